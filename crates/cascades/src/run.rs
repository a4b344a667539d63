//! Plays many cascades.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use tiphys_doctor::{Case, Diagnosis, diagnose};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    dump::{dump, objects},
    flux,
    generate::generate,
    plant::{Planted, Scene},
    play::{bring_up, play},
    random::Random,
    repository::Repository,
    score::{Score, Table, score},
    thin::thinned,
};

/// What is played.
#[derive(Clone, Debug)]
pub struct Options {
    /// About how many cascades.
    pub count: usize,
    pub seed: u64,
    /// Folders with repositories that are played beside those that are made.
    pub folders: Vec<(String, PathBuf)>,
    /// How many repositories are made.
    pub made: usize,
    /// Where misses are written.
    pub misses: Option<PathBuf>,
    /// Only kinds of faults that contain this.
    pub only: Option<String>,
    /// How many thinned copies of each dump are tried.
    pub thin: usize,
    /// Whether each dump is tried as Flux would have delivered it, too.
    pub flux: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub table: Table,
    /// The same for thinned dumps.
    pub thinned: Table,
    /// The same, as Flux would have delivered it.
    pub by_flux: Table,
    pub misses: Vec<String>,
    /// Repositories that did not come up, and plays that could not run.
    pub troubles: Vec<String>,
}

impl Outcome {
    fn take(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.table, &other.table),
            (&mut self.thinned, &other.thinned),
            (&mut self.by_flux, &other.by_flux),
        ] {
            for (kind, row) in &theirs.rows {
                let sum = mine.rows.entry(kind).or_default();
                sum.cases += row.cases;
                sum.first += row.first;
                sum.false_roots += row.false_roots;
                sum.silent += row.silent;
                sum.without_effect += row.without_effect;
            }
        }
        self.misses.extend(other.misses);
        self.troubles.extend(other.troubles);
    }
}

/// Plays. Repositories are shared out among threads; the outcome does not depend on how.
#[must_use]
pub fn run(options: &Options) -> Outcome {
    let mut repositories: Vec<Repository> = (0..options.made)
        .map(|at| generate(options.seed.wrapping_mul(1000).wrapping_add(at as u64)))
        .collect();
    let mut outcome = Outcome::default();
    for (name, folder) in &options.folders {
        match Repository::read(name, folder) {
            Ok(repository) => repositories.push(repository),
            Err(error) => outcome.troubles.push(format!("{name}: {error}")),
        }
    }
    let each = options.count.div_ceil(repositories.len().max(1));
    let next = AtomicUsize::new(0);
    let all = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(repository) = repositories.get(at) else { return };
                    let one = run_one(repository, at, each, options);
                    all.lock().insert(at, one);
                }
            });
        }
    });
    let all = all.into_inner();
    all.into_values().for_each(|one| outcome.take(one));
    outcome
}

/// The faults of a repository that are played: of every kind some, in a drawn order.
fn chosen(mut faults: Vec<Planted>, at: usize, count: usize, random: &mut Random) -> Vec<Planted> {
    random.shuffle(&mut faults);
    let mut by_kind: BTreeMap<&str, Vec<Planted>> = BTreeMap::new();
    for fault in faults {
        by_kind.entry(fault.kind).or_default().push(fault);
    }
    let mut kinds: Vec<&str> = by_kind.keys().copied().collect();
    // Repositories begin with different kinds, so that few cascades are of many kinds.
    let turn = (at * count) % kinds.len().max(1);
    kinds.rotate_left(turn);
    let mut chosen = Vec::new();
    while chosen.len() < count && by_kind.values().any(|faults| !faults.is_empty()) {
        for kind in &kinds {
            if chosen.len() < count
                && let Some(fault) = by_kind.get_mut(kind).and_then(Vec::pop)
            {
                chosen.push(fault);
            }
        }
    }
    chosen
}

fn run_one(repository: &Repository, at: usize, count: usize, options: &Options) -> Outcome {
    let mut outcome = Outcome::default();
    let seed = options.seed.wrapping_add(at as u64);
    let ground = match bring_up(repository, seed) {
        Ok(ground) => ground,
        Err(error) => {
            outcome.troubles.push(format!("{}: {error:#}", repository.name));
            return outcome;
        }
    };
    let live = objects(&ground.still);
    let red = red_objects(&live);
    if !red.is_empty() {
        outcome.troubles.push(format!("{} does not come up: {}", repository.name, red.join(", ")));
        return outcome;
    }
    let scene = Scene { repository, live };
    let mut random = Random::new(seed);
    let wanted =
        |fault: &Planted| options.only.as_ref().is_none_or(|only| fault.kind.contains(only.as_str()));
    let faults = scene.faults().into_iter().filter(wanted).collect();
    for (number, planted) in chosen(faults, at, count, &mut random).into_iter().enumerate() {
        let name = format!("{}-{number:03}", repository.name);
        let still = match play(repository, &ground, &planted) {
            Ok(still) => still,
            Err(error) => {
                outcome.troubles.push(format!("{name} {}, {}: {error:#}", planted.kind, planted.target));
                continue;
            }
        };
        let mut case = dump(&still, repository, &planted);
        if !planted.flux.is_empty() {
            case = flux::delivered(&case, &planted);
        }
        let diagnosis = diagnose(&case);
        let scored = score(&diagnosis, &planted);
        let has_effect = planted.expected.causes.is_empty() || has_effect(&case, &planted, &scored);
        outcome.table.add(&planted, &scored, has_effect);
        if !scored.is_first || !scored.false_roots.is_empty() || !has_effect {
            outcome.misses.push(describe_miss(&name, &planted, &scored, &diagnosis, has_effect));
            if let Some(folder) = &options.misses {
                let saved = save(&folder.join(&name), &case, &planted, &scored, &diagnosis);
                outcome.troubles.extend(saved.err().map(|error| format!("{name}: {error}")));
            }
        }
        if options.flux && planted.flux.is_empty() && has_effect && !planted.of_argo_only {
            let case = flux::delivered(&case, &planted);
            let planted = flux::expected(&planted);
            let diagnosis = diagnose(&case);
            let scored = score(&diagnosis, &planted);
            outcome.by_flux.add(&planted, &scored, true);
            if !scored.is_first || !scored.false_roots.is_empty() {
                let name = format!("{name}-flux");
                outcome.misses.push(describe_miss(&name, &planted, &scored, &diagnosis, true));
                if let Some(folder) = &options.misses {
                    let saved = save(&folder.join(&name), &case, &planted, &scored, &diagnosis);
                    outcome.troubles.extend(saved.err().map(|error| format!("{name}: {error}")));
                }
            }
        }
        for copy in 0..options.thin {
            let thin = thinned(&case, &mut random);
            let diagnosis = diagnose(&thin);
            let scored = score(&diagnosis, &planted);
            outcome.thinned.add(&planted, &scored, true);
            if !scored.false_roots.is_empty() {
                let name = format!("{name}-thin-{copy}");
                outcome.misses.push(describe_miss(&name, &planted, &scored, &diagnosis, true));
                if let Some(folder) = &options.misses {
                    let saved = save(&folder.join(&name), &thin, &planted, &scored, &diagnosis);
                    outcome.troubles.extend(saved.err().map(|error| format!("{name}: {error}")));
                }
            }
        }
    }
    outcome
}

/// Applications and pods that are not well.
fn red_objects(live: &[Value]) -> Vec<String> {
    let is_red = |object: &&Value| match object.kind() {
        "Application" => {
            object.str_at(&["status", "health", "status"]) != Some("Healthy")
                || object.str_at(&["status", "sync", "status"]) != Some("Synced")
        }
        "Pod" => {
            let phase = object.str_at(&["status", "phase"]);
            let conditions =
                object.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
            let is_ready = conditions
                .into_iter()
                .any(|it| it.str_at(&["type"]) == Some("Ready") && it.str_at(&["status"]) == Some("True"));
            phase != Some("Succeeded") && !is_ready
        }
        _ => false,
    };
    live.iter().filter(is_red).map(state_line).collect()
}

/// What is said of a red object.
fn state_line(object: &Value) -> String {
    let said = ["health", "sync", "operationState"].map(|part| {
        let part = object.at(&["status", part]);
        let words = ["status", "phase", "message"].into_iter();
        words.filter_map(|key| part?.str_at(&[key])).collect::<Vec<_>>().join(" ")
    });
    format!("{} {}/{} {}", object.kind(), object.namespace(), object.name(), said.join(" "))
}

/// Whether a fault broke anything. Routes and autoscalers are not red themselves.
fn has_effect(case: &Case, planted: &Planted, score: &Score) -> bool {
    let is_quiet = planted.kind.starts_with("edge") || planted.kind.starts_with("scale");
    is_quiet || !score.is_silent || !red_objects(&case.objects).is_empty()
}

fn describe_miss(
    name: &str,
    planted: &Planted,
    score: &Score,
    diagnosis: &Diagnosis,
    has_effect: bool,
) -> String {
    let mut text = format!(
        "{name}: {}, {}; expected {} at {}\n",
        planted.kind,
        planted.target,
        planted.expected.causes.join("|"),
        planted
            .expected
            .objects
            .iter()
            .map(|(kind, namespace, name)| format!("{kind} {namespace}/{name}"))
            .collect::<Vec<_>>()
            .join("|")
    );
    if !has_effect {
        text += "    it has no effect\n";
    }
    for root in &diagnosis.causes {
        text += &format!("    {} {} ({:.2}): {}\n", root.cause, root.object, root.confidence, root.summary);
    }
    if score.is_silent {
        for it in diagnosis.unexplained.iter().take(8) {
            text += &format!("    unexplained {}: {}\n", it.object, it.symptom);
        }
    }
    text
}

/// Writes a miss as a dump with its answer.
fn save(
    folder: &Path,
    case: &Case,
    planted: &Planted,
    score: &Score,
    diagnosis: &Diagnosis,
) -> std::io::Result<()> {
    let dump = folder.join("dump");
    fs::create_dir_all(dump.join("logs"))?;
    let list = |items: &[Value]| {
        tiphys_yaml::to_yaml(&tiphys_value::json!({"apiVersion": "v1", "kind": "List", "items": items}))
    };
    fs::write(dump.join("objects.yaml"), list(&case.objects))?;
    let events: Vec<Value> = case.events.iter().enumerate().map(|(at, event)| {
        tiphys_value::json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("e{at}"), "namespace": event.object.namespace},
            "involvedObject": {"kind": event.object.kind, "namespace": event.object.namespace, "name": event.object.name, "uid": event.uid},
            "type": event.kind, "reason": event.reason, "message": event.message, "count": event.count,
            "firstTimestamp": event.first.map(|at| at.to_string()), "lastTimestamp": event.last.map(|at| at.to_string()),
            "source": {"component": event.source}})
    }).collect();
    fs::write(dump.join("events.yaml"), list(&events))?;
    for log in &case.logs {
        let previous = if log.previous { ".previous" } else { "" };
        fs::write(
            dump.join(format!("logs/{}_{}_{}{previous}.log", log.namespace, log.pod, log.container)),
            &log.text,
        )?;
    }
    if let Some(at) = case.at {
        fs::write(folder.join("now"), at.to_string())?;
    }
    fs::write(
        folder.join("miss.txt"),
        format!(
            "{}\n{}",
            describe_miss("this", planted, score, diagnosis, true),
            serde_json::to_string_pretty(diagnosis)?
        ),
    )
}
