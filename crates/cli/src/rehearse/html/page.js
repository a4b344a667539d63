"use strict";
(() => {
  const island = document.getElementById("story");
  if (!island) return;
  const data = JSON.parse(island.textContent);
  const { texts } = data;
  const $ = (id) => document.getElementById(id);
  const make = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const clock = (ms) => {
    const s = Math.floor(ms / 1000), two = (n) => String(n).padStart(2, "0");
    if (s < 10 && ms % 1000 >= 100) return `${s}.${Math.floor((ms % 1000) / 100)}s`;
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
    return `${Math.floor(s / 3600)}h${two(Math.floor((s % 3600) / 60))}m`;
  };

  // Every object with its moments: { at, what, from, to, level, because, fields }.
  const [CREATED, CHANGED, , DELETED] = [0, 1, 2, 3];
  const objects = data.objects.map(([group, kind, namespace, name, app, maker, fromGit, cluster], number) => ({
    number, group: texts[group], kind: texts[kind], namespace: texts[namespace], name: texts[name], app, maker, fromGit,
    cluster, moments: [], below: [], cause: -1,
  }));
  const times = new Set([0]);
  for (const [at, number, what, from, to, level, because, fields] of data.moments) {
    times.add(at);
    const moment = { at, what, from: texts[from], to: texts[to], level, because: texts[because], fields: texts[fields] };
    objects[number].moments.push(moment);
  }
  data.causes.forEach((all, cause) => all.forEach((number) => { objects[number].cause = cause; }));
  const end = Math.max(data.tookMs, ...times);
  times.add(end);
  const steps = [...times].sort((a, b) => a - b);

  // Silence is short on the scale: a gap weighs by the logarithm of its length.
  const xs = [0];
  for (let at = 1; at < steps.length; at += 1) xs.push(xs[at - 1] + 0.2 + Math.log10(1 + (steps[at] - steps[at - 1]) / 100));
  const whole = xs[xs.length - 1] || 1;
  xs.forEach((x, at) => { xs[at] = x / whole; });
  const index = (ms) => {
    let low = 0, high = steps.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (steps[middle] <= ms) low = middle; else high = middle - 1;
    }
    return low;
  };
  const xOf = (ms) => xs[index(ms)];

  /// The state at a time; null before the object is there.
  const stateAt = (moments, ms) => {
    let found = null;
    for (const moment of moments) {
      if (moment.at > ms) break;
      if (moment.what !== CHANGED || !found) found = moment;
    }
    if (found) return { ...found, isGone: found.what === DELETED, word: found.what === DELETED ? "deleted" : found.to };
    const first = moments[0];
    if (!first || first.what === CREATED) return null;
    return { word: first.from, level: 0, because: "", isGone: false, what: CHANGED };
  };

  // The tree: Applications below their parents, objects below their Applications and what made them.
  const rows = [];
  const apps = new Map();
  const row = (fields) => { const one = { below: [], isOpen: false, ...fields }; rows.push(one); return one; };
  for (const app of data.apps) {
    const object = objects.find((it) => it.kind === "Application" && it.group === "argoproj.io" && it.name === app.name && (it.namespace === app.namespace));
    apps.set(app.id, row({ app, object, name: app.name, kind: "", moments: object ? object.moments : [] }));
  }
  const roots = [];
  for (const one of apps.values()) {
    const parent = apps.get(one.app.parent);
    if (parent && parent !== one) parent.below.push(one); else roots.push(one);
  }
  const seen = new Set([...apps.values()].map((one) => one.object));
  const rowOf = new Map();
  const others = row({ name: "In the cluster", kind: "", moments: [], isGroup: true });
  for (const object of objects) {
    if (!seen.has(object) && (object.moments.length || object.cause >= 0)) {
      rowOf.set(object.number, row({ object, name: object.name, kind: object.kind, moments: object.moments }));
    }
  }
  for (const [number, one] of rowOf) {
    const { maker, app } = objects[number];
    const above = (maker !== null && maker !== number && rowOf.get(maker)) || apps.get(app) || others;
    above.below.push(one);
  }
  if (others.below.length) roots.push(others);
  // An Application whose end is not green stays that, whatever its objects say.
  const isStuck = (one, ms) => one.app && !one.app.isGreen && !data.isGreen && ms >= end;
  const look = (one, ms) => {
    if (one.isGroup) return { level: 0, word: "", because: "", isGone: false };
    const state = stateAt(one.moments, ms) || (one.app && !one.moments.length ? { level: one.app.isGreen ? 0 : 2, word: one.app.state, because: "", isGone: false } : null);
    return state && isStuck(one, ms) ? { ...state, level: 2 } : state;
  };
  const colors = ["var(--good)", "var(--moving)", "var(--bad)"];
  const paint = (one) => {
    if (one.isGroup) return "";
    const parts = [];
    const marks = [0, ...one.moments.map((moment) => moment.at), end].filter((at, n, all) => !n || at !== all[n - 1]);
    for (let at = 0; at < marks.length; at += 1) {
      const state = look(one, marks[at] === end ? end - 1 : marks[at]);
      const from = xOf(marks[at]) * 100, to = (at + 1 < marks.length ? xOf(marks[at + 1]) : 1) * 100;
      const color = !state || state.isGone ? "transparent" : colors[state.level];
      parts.push(`${color} ${from.toFixed(2)}% ${to.toFixed(2)}%`);
    }
    return parts.length ? `linear-gradient(90deg, ${parts.join(",")})` : "";
  };

  // Rows are drawn when they are first seen.
  const tree = $("tree");
  let now = end, selected = null, shown = [];
  const glyphs = ["✓", "…", "✕"];
  const draw = (one, depth) => {
    const line = make("div", `row ${one.app ? "app" : "object"}`);
    line.role = "treeitem";
    line.tabIndex = -1;
    line.style.setProperty("--depth", depth);
    line.setAttribute("aria-level", depth + 1);
    const name = make("div", "name");
    one.twist = make("span", "twist", one.below.length ? "▶" : "");
    one.twist.ariaHidden = "true";
    one.dot = make("span", "dot");
    one.dot.ariaHidden = "true";
    const label = make("span", "label");
    if (one.kind) label.append(make("small", "", `${one.kind} `));
    label.append(one.name);
    const place = one.object && one.object.namespace && !one.app ? `${one.object.namespace}/${one.name}` : one.name;
    label.title = `${one.kind} ${place}`.trim();
    one.word = make("span", "word");
    name.append(one.twist, one.dot, label);
    if (one.object && one.object.cause >= 0) {
      const badge = make("a", "badge", String(one.object.cause + 1));
      badge.href = `#cause-${one.object.cause}`;
      badge.title = "cause";
      badge.tabIndex = -1;
      name.append(badge);
    }
    name.append(one.word);
    const bar = make("div", "bar");
    bar.ariaHidden = "true";
    const fill = make("i");
    fill.style.background = paint(one);
    bar.append(fill);
    if (one.isGroup) bar.hidden = true;
    line.append(name, bar);
    line.addEventListener("click", (event) => { if (!event.target.closest("a")) { select(one); toggle(one); } });
    one.line = line;
    one.depth = depth;
    return line;
  };
  const update = (one) => {
    const state = look(one, now);
    const { line } = one;
    line.classList.toggle("absent", !state || state.isGone);
    for (const level of [0, 1, 2]) line.classList.toggle(`l${level}`, Boolean(state) && !state.isGone && !one.isGroup && state.level === level);
    one.dot.textContent = !state || state.isGone || one.isGroup ? "" : glyphs[state.level];
    one.word.textContent = state ? state.word : "not there yet";
    one.word.title = state ? state.because || "" : "";
    if (one.below.length) line.setAttribute("aria-expanded", one.isOpen); else line.removeAttribute("aria-expanded");
    line.setAttribute("aria-selected", selected === one);
    line.tabIndex = selected === one || (!selected && shown[0] === one) ? 0 : -1;
  };

  const filter = $("filter"), trouble = $("trouble");
  const isWanted = (one) => {
    const text = filter.value.trim().toLowerCase();
    const state = look(one, now);
    const fits = (!text || `${one.kind} ${one.name} ${one.object ? one.object.namespace : ""}`.toLowerCase().includes(text))
      && (!trouble.checked || (state && !state.isGone && state.level > 0 && !one.isGroup));
    return fits || one.below.some(isWanted);
  };
  const layout = () => {
    shown = [];
    const isFiltered = filter.value.trim() !== "" || trouble.checked;
    const lines = [];
    const walk = (one, depth) => {
      if (isFiltered && !isWanted(one)) return;
      shown.push(one);
      if (!one.line || one.depth !== depth) draw(one, depth);
      lines.push(one.line);
      if (one === selected && !one.isGroup) lines.push(history(one, depth));
      if (one.isOpen || isFiltered) one.below.forEach((next) => walk(next, depth + 1));
    };
    roots.forEach((one) => walk(one, 0));
    tree.replaceChildren(...lines);
    if (!lines.length) tree.append(make("p", "tools", "nothing fits"));
    shown.forEach(update);
  };
  const history = (one, depth) => {
    const list = make("div", "history");
    list.style.setProperty("--depth", depth);
    if (one.app && one.app.place) list.append(make("small", "", `written in ${one.app.place}`));
    const current = one.moments.filter((moment) => moment.at <= now).pop();
    for (const moment of one.moments.slice(-40)) {
      const button = make("button", moment === current ? "at" : "");
      button.type = "button";
      button.append(make("time", "", clock(moment.at)));
      const told = make("span");
      const words = ["created", "changed", "", "deleted"][moment.what];
      told.append([words, moment.what === CHANGED ? moment.fields : moment.to].filter(Boolean).join(", "));
      if (moment.because) told.append(make("small", "", moment.because));
      button.append(told);
      button.addEventListener("click", () => go(moment.at));
      list.append(button);
    }
    if (!one.moments.length) list.append(make("small", "", "nothing happens to it"));
    return list;
  };
  const select = (one) => { selected = one; };
  const toggle = (one, to = !one.isOpen) => { one.isOpen = to && one.below.length > 0; layout(); if (selected) selected.line.focus({ preventScroll: true }); };
  const focus = (one) => { if (!one) return; select(one); layout(); one.line.focus(); };
  const parentOf = (one) => rows.find((it) => it.below.includes(one));
  tree.addEventListener("keydown", (event) => {
    if (event.target.closest(".history, a")) return;
    const at = shown.indexOf(selected);
    const keys = {
      ArrowDown: () => focus(shown[Math.min(at + 1, shown.length - 1)]),
      ArrowUp: () => focus(shown[Math.max(at - 1, 0)]),
      Home: () => focus(shown[0]),
      End: () => focus(shown[shown.length - 1]),
      ArrowRight: () => { if (!selected) return; if (selected.below.length && !selected.isOpen) toggle(selected, true); else if (selected.below.length) focus(shown[at + 1]); },
      ArrowLeft: () => { if (!selected) return; if (selected.isOpen) toggle(selected, false); else focus(parentOf(selected)); },
      Enter: () => { if (selected) toggle(selected); },
      " ": () => { if (selected) toggle(selected); },
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  tree.addEventListener("focusin", (event) => {
    if (!selected) { const one = shown.find((it) => it.line === event.target); if (one) { select(one); update(one); } }
  });

  // What waits, and what has just happened.
  const show = (object) => `${object.kind} ${object.namespace && object.kind !== "Application" ? `${object.namespace}/` : ""}${object.name}`;
  const all = [];
  for (const object of objects) for (const moment of object.moments) all.push({ ...moment, object });
  all.sort((a, b) => a.at - b.at);
  const tell = () => {
    const waits = new Map();
    for (const one of rows) {
      const state = !one.isGroup && look(one, now);
      if (!state || state.isGone || state.level === 0 || !state.because) continue;
      const key = state.because;
      if (!waits.has(key)) waits.set(key, { level: state.level, who: [] });
      waits.get(key).who.push(one.object ? show(one.object) : one.name);
    }
    const panel = $("now");
    const parts = [make("h3", "", `At ${clock(now)}`)];
    if (waits.size) {
      const list = make("ul");
      for (const [why, { level, who }] of [...waits].sort((a, b) => b[1].level - a[1].level).slice(0, 8)) {
        const item = make("li");
        item.append(make("b", `why ${["", "moving-ink", "bad-ink"][level]}`, why.length > 260 ? `${why.slice(0, 260)}…` : why));
        item.append(make("small", "", who.length > 3 ? `${who.slice(0, 3).join(", ")} and ${who.length - 3} more` : who.join(", ")));
        list.append(item);
      }
      parts.push(list);
    } else parts.push(make("p", "calm", "Nothing waits."));
    const last = index(now);
    const past = all.filter((moment) => moment.at <= steps[last]).slice(-5).reverse();
    if (past.length) {
      parts.push(make("h3", "", "Just happened"));
      const list = make("ul");
      for (const moment of past) {
        const item = make("li");
        const words = ["created", "changed", "", "deleted"][moment.what];
        item.append(make("b", "", show(moment.object)), ` ${[words, moment.to].filter(Boolean).join(", ")}`, make("small", "", clock(moment.at)));
        list.append(item);
      }
      parts.push(list);
    }
    panel.replaceChildren(...parts);
  };

  // The strata: how many Applications are well, on the way, and broken, over time.
  const count = (ms) => {
    const counts = [0, 0, 0];
    for (const one of apps.values()) { const state = look(one, ms); if (state && !state.isGone) counts[state.level] += 1; }
    return counts;
  };
  const strata = () => {
    const svg = $("strata"), most = Math.max(1, apps.size), marks = [];
    const every = Math.max(1, Math.ceil(steps.length / 400));
    for (let at = 0; at < steps.length; at += every) marks.push(at);
    if (marks[marks.length - 1] !== steps.length - 1) marks.push(steps.length - 1);
    svg.setAttribute("viewBox", "0 0 1000 100");
    const counts = marks.map((at) => count(Math.min(steps[at], at + 1 < steps.length ? steps[at] : end)));
    const shape = (level) => {
      const below = counts.map((it) => it.slice(level + 1).reduce((a, b) => a + b, 0));
      const line = (n, extra) => {
        const y = 100 - (100 * (below[n] + extra)) / most;
        const to = n + 1 < marks.length ? xs[marks[n + 1]] : 1;
        return [[xs[marks[n]] * 1000, y], [to * 1000, y]];
      };
      const top = marks.flatMap((_, n) => line(n, counts[n][level]));
      const low = marks.flatMap((_, n) => line(n, 0)).reverse();
      return `M${[...top, ...low].map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
    };
    const ns = "http://www.w3.org/2000/svg";
    for (const level of [0, 1, 2]) {
      const path = document.createElementNS(ns, "path");
      path.setAttribute("class", `s${level}`);
      path.setAttribute("d", shape(level));
      svg.append(path);
    }
    const cursor = document.createElementNS(ns, "line");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("y1", "0");
    cursor.setAttribute("y2", "100");
    svg.append(cursor);
    const ticks = $("ticks"), wanted = matchMedia("(max-width: 40rem)").matches ? 4 : 8;
    let last = "";
    for (let n = 0; n < wanted; n += 1) {
      const x = n / (wanted - 1);
      let at = 0;
      while (at + 1 < xs.length && xs[at + 1] <= x + 1e-9) at += 1;
      const text = clock(steps[at]);
      if (text === last && n) continue;
      last = text;
      const tick = make("span", "", text);
      tick.style.left = `${xs[at] * 100}%`;
      ticks.append(tick);
    }
    return cursor;
  };

  const slider = $("time");
  let cursor = null;
  const go = (ms, isPlaying = false) => {
    now = Math.max(0, Math.min(end, ms));
    const x = xOf(now);
    slider.value = Math.round(x * 10000);
    const counts = count(now);
    const words = ["green", "on the way", data.isGreen || now < end ? "broken" : "not green"];
    $("clock").textContent = clock(now);
    const told = counts.map((n, level) => `${n} ${words[level]}`);
    slider.setAttribute("aria-valuetext", `${clock(now)}: ${told.join(", ")}`);
    $("counts").replaceChildren(...counts.map((n, level) => {
      const span = make("span");
      span.append(make("b", ["good-ink", "moving-ink", "bad-ink"][level], String(n)), ` ${words[level]}`);
      return span;
    }));
    tree.style.setProperty("--x", x);
    cursor.setAttribute("x1", x * 1000);
    cursor.setAttribute("x2", x * 1000);
    if (selected || trouble.checked) layout(); else shown.forEach(update);
    tell();
    if (!isPlaying) stop();
  };
  const step = (by) => go(steps[Math.max(0, Math.min(steps.length - 1, index(now) + by))]);
  slider.addEventListener("input", () => {
    const x = slider.value / 10000;
    let at = 0;
    while (at + 1 < xs.length && xs[at + 1] <= x + 1e-4) at += 1;
    go(steps[at]);
  });
  slider.addEventListener("keydown", (event) => {
    const keys = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
    if (event.key in keys) { event.preventDefault(); step(keys[event.key]); }
  });
  $("back").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));

  // Playing takes about ten seconds, whatever the story's length.
  const button = $("play");
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.firstElementChild.textContent = "▶";
    button.ariaLabel = "Play";
  };
  button.addEventListener("click", () => {
    if (timer) { stop(); return; }
    const pace = Math.max(1, Math.ceil(steps.length / 150));
    if (now >= end) go(0);
    button.firstElementChild.textContent = "❚❚";
    button.ariaLabel = "Pause";
    timer = setInterval(() => {
      const at = Math.min(steps.length - 1, index(now) + pace);
      go(steps[at], true);
      if (at === steps.length - 1) stop();
    }, Math.max(60, Math.min(400, 9000 / steps.length)));
  });
  filter.addEventListener("input", layout);
  trouble.addEventListener("change", layout);

  document.querySelectorAll("#player [hidden]").forEach((node) => { node.hidden = false; });
  for (const one of roots) if (one.below.some((next) => next.app)) one.isOpen = true;
  const red = [...apps.values()].filter((one) => !one.app.isGreen);
  if (red.length <= 3) red.forEach((one) => { one.isOpen = true; });
  if (apps.size <= 2) for (const one of apps.values()) one.isOpen = true;
  cursor = strata();
  layout();
  go(end);
  document.documentElement.dataset.ready = "true";
})();
