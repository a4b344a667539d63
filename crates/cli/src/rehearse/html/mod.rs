//! A rehearsal as one page: the verdict, why, and the story under a slider of time. It loads nothing, and its
//! policy forbids it to.

mod causes;
mod explored;
mod island;

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};
use tiphys_diag::sanitize;
use tiphys_stage::story::{AppEnd, Story};

use super::{
    effect_lines::effect_lines,
    report::{Exploration, Report},
    text::{self, assumed_lines, ended, object_name, time, verdict},
};

/// How the page looks.
const STYLE: &str = include_str!("page.css");
/// What draws the story.
const SCRIPT: &str = include_str!("page.js");
/// How many lines are shown before the rest is folded.
const SHOWN: usize = 8;

/// The whole page. Writing to a `String` cannot fail.
pub(super) fn write(report: &Report) -> String {
    let story = &report.story;
    let mut body = String::new();
    head(report, &mut body);
    causes::write(&story.causes, &mut body);
    change(report, &mut body);
    player(story, &mut body);
    let not_begun: Vec<String> = story.not_begun.iter().map(object_name).collect();
    list("Never begins, because what comes before does not end", &not_begun, &mut body);
    outages(story, &mut body);
    list("What is not known", &assumed_lines(report), &mut body);
    images(&story.assumed.images, &mut body);
    let _ = writeln!(
        body,
        "<script type=\"application/json\" id=\"story\">{}</script>\n<script>{SCRIPT}</script>",
        island::json(report)
    );
    page(&verdict(report), &body)
}

/// What every single fault leads to, as one page.
pub(super) fn write_exploration(exploration: &Exploration) -> String {
    let (title, body) = explored::body(exploration);
    page(&title, &body)
}

/// A page around its content.
fn page(title: &str, body: &str) -> String {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <footer>Made by tiphys {}. Time is virtual. This page loads nothing.</footer>\n</main>\n</body>\n</html>\n",
        sanitize::html(title),
        env!("CARGO_PKG_VERSION")
    )
}

/// The mark of a verdict, and what is told before it.
fn banner(is_green: bool, tool: &str, verdict: &str, chips: &[(&str, String)], body: &mut String) {
    let (class, mark) = if is_green { ("good", "✓") } else { ("bad", "✕") };
    let _ = writeln!(
        body,
        "<header class=\"verdict {class}\">\n<p class=\"tool\">{tool}</p>\n\
         <h1><span class=\"mark\" aria-hidden=\"true\">{mark}</span>{}</h1>",
        sanitize::html(&upper_first(verdict))
    );
    if !chips.is_empty() {
        body.push_str("<ul class=\"chips\">");
        for (label, value) in chips {
            let _ = write!(body, "<li><span>{label}</span> {}</li>", sanitize::html(value));
        }
        body.push_str("</ul>\n");
    }
    body.push_str("</header>\n");
}

fn upper_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn head(report: &Report, body: &mut String) {
    let mut chips = Vec::new();
    if let Some(change) = &report.change {
        chips.push(("change", format!("{} → {}", change.base, change.head)));
        chips.push(("before", ended(&change.before)));
    }
    let rules = if report.rules == "argo-cd" { "Argo CD’s" } else { "Tiphys’" };
    chips.push(("rules", rules.to_owned()));
    chips.push(("seed", report.seed.to_string()));
    chips.extend(report.faults.iter().map(|fault| ("fault", fault.clone())));
    chips.extend(report.without_faults.iter().map(|without| ("without faults", ended(without))));
    banner(report.is_green, "tiphys rehearse", &verdict(report), &chips, body);
    for difference in report.differences.iter().flatten() {
        let _ = writeln!(
            body,
            "<p class=\"difference\"><b>{}</b> by Argo CD’s rules: {}; by Tiphys’ rules: {}</p>",
            sanitize::html(&difference.application),
            sanitize::html(&difference.argo_cd),
            sanitize::html(&difference.tiphys)
        );
    }
}

/// Slider, tree and what happens at the moment; without a script, how the Applications end.
fn player(story: &Story, body: &mut String) {
    body.push_str(
        "<section id=\"player\" aria-labelledby=\"player-title\">\n<h2 id=\"player-title\">What happens</h2>\n\
         <div class=\"transport\" hidden>\n<div class=\"dial\">\n\
         <button type=\"button\" id=\"play\" aria-label=\"Play\"><span aria-hidden=\"true\">▶</span></button>\n\
         <output id=\"clock\" for=\"time\">0s</output>\n<p id=\"counts\"></p>\n\
         <div class=\"steps\"><button type=\"button\" id=\"back\" aria-label=\"To the moment before\">‹</button>\
         <button type=\"button\" id=\"next\" aria-label=\"To the next moment\">›</button></div>\n</div>\n\
         <div class=\"scale\"><svg id=\"strata\" preserveAspectRatio=\"none\" aria-hidden=\"true\"></svg>\n\
         <input id=\"time\" type=\"range\" min=\"0\" max=\"10000\" step=\"1\" value=\"10000\" aria-label=\"Time\">\n\
         <div id=\"ticks\" aria-hidden=\"true\"></div></div>\n</div>\n\
         <div class=\"stage\" hidden>\n<div class=\"lanes\">\n\
         <div class=\"tools\"><input id=\"filter\" type=\"search\" placeholder=\"Filter by name\" aria-label=\"Filter by name\">\
         <label><input id=\"trouble\" type=\"checkbox\"> only what is not well</label></div>\n\
         <div id=\"tree\" role=\"tree\" aria-label=\"Applications and their objects\"></div>\n</div>\n\
         <aside id=\"now\" aria-live=\"polite\" aria-label=\"At this moment\"></aside>\n</div>\n<noscript>\n",
    );
    for (app, state) in story.applications.iter().map(|app| (app, app_state(app))) {
        let _ = writeln!(body, "<p><b>{}</b> {}</p>", sanitize::html(&app.name), sanitize::html(&state));
    }
    body.push_str("</noscript>\n</section>\n");
}

fn app_state(app: &AppEnd) -> String {
    let green = app.green_ms.filter(|_| app.is_green);
    green.map_or_else(|| app.state.clone(), |at| format!("green at {}", time(at)))
}

fn change(report: &Report, body: &mut String) {
    let Some(change) = report.change.as_ref().filter(|it| !it.effects.applications.is_empty()) else {
        return;
    };
    let effects = &change.effects;
    body.push_str("<section>\n<h2>What the change does</h2>\n");
    for (name, app) in &effects.applications {
        let mark = match () {
            () if effects.turned_red.contains(name) => "<span class=\"tag bad\">turns red</span>",
            () if effects.still_red.contains(name) => "<span class=\"tag bad\">is not green</span>",
            () => "",
        };
        let _ = writeln!(body, "<h3>{} {mark}</h3>\n<ul class=\"diff\">", sanitize::html(name));
        for line in effect_lines(app) {
            let class = match line.chars().next() {
                Some('+') => "plus",
                Some('-') => "minus",
                Some('~' | '±') => "change",
                _ => "note",
            };
            let _ = writeln!(body, "<li class=\"{class}\">{}</li>", sanitize::html(&line));
        }
        body.push_str("</ul>\n");
    }
    body.push_str("</section>\n");
}

fn outages(story: &Story, body: &mut String) {
    let lines: Vec<String> = text::outages_by_object(story)
        .iter()
        .map(|(object, told)| format!("{}: {told}", object_name(object)))
        .collect();
    list("Unavailable after it was there", &lines, body);
}

/// The images of which nothing is known, folded.
fn images(images: &[String], body: &mut String) {
    if images.is_empty() {
        return;
    }
    let items: String = images.iter().map(|image| format!("<li>{}</li>\n", sanitize::html(image))).collect();
    let _ = writeln!(
        body,
        "<section>\n<details><summary>Images assumed to exist, to be public and to start ({})</summary>\n<ul>\n{items}</ul>\n</details>\n</section>",
        images.len()
    );
}

/// A list, of which what does not fit is folded.
fn list(title: &str, lines: &[String], body: &mut String) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(body, "<section>\n<h2>{title}</h2>");
    let items = |lines: &[String]| -> String {
        lines.iter().map(|line| format!("<li>{}</li>\n", sanitize::html(line))).collect()
    };
    let first = lines.len().min(SHOWN);
    let _ = writeln!(body, "<ul>\n{}</ul>", items(&lines[..first]));
    if first < lines.len() {
        let _ = writeln!(
            body,
            "<details><summary>{} more</summary>\n<ul>\n{}</ul>\n</details>",
            lines.len() - first,
            items(&lines[first..])
        );
    }
    body.push_str("</section>\n");
}
