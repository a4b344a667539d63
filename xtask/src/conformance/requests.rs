//! `cargo xtask conformance requests`: sends the same requests to both servers and compares the answers.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use tiphys_value::{ObjectExt, Value};

use super::{
    api_client::Peer,
    compare::{Difference, compare},
    corpus::{self, Exchange, Sequence},
    generate, managers, manifests, report,
    twin::Twin,
};
use crate::schema::Server;

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with sequences written by hand.
    #[arg(long, default_value = "crates/apiserver/tests/corpus")]
    corpus: PathBuf,
    /// Mutations of each sample.
    #[arg(long, default_value_t = 16)]
    mutations: usize,
    /// Objects that three managers apply, update and patch in random order.
    #[arg(long, default_value_t = 150)]
    shared: usize,
    /// Folders whose manifests are created with dry run, and whose definitions before that.
    #[arg(long)]
    manifests: Vec<PathBuf>,
    /// Odd edits of each of those manifests, in each way in which an object can be written.
    #[arg(long, default_value_t = 0)]
    edits: usize,
    /// How many manifests of one kind live through such edits.
    #[arg(long, default_value_t = 12)]
    edited: usize,
    /// Only sequences whose name contains this; nothing is published then.
    #[arg(long)]
    filter: Option<String>,
    /// Where to write every difference.
    #[arg(long, default_value = "target/conformance.txt")]
    details: PathBuf,
}

/// How many answers were equal.
#[derive(Clone, Copy, Default)]
struct Score {
    requests: usize,
    codes: usize,
    errors: usize,
    messages: usize,
    answers: usize,
    objects: usize,
}

impl Score {
    fn count(&mut self, is_error: bool, difference: Option<&Difference>) {
        self.requests += 1;
        if matches!(difference, Some(Difference::Code { .. })) {
            return;
        }
        self.codes += 1;
        let (all, equal) = match is_error {
            true => (&mut self.errors, &mut self.messages),
            false => (&mut self.answers, &mut self.objects),
        };
        *all += 1;
        *equal += usize::from(difference.is_none());
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.codes += other.codes;
        self.errors += other.errors;
        self.messages += other.messages;
        self.answers += other.answers;
        self.objects += other.objects;
    }
}

/// A difference and where it was met.
struct Found {
    sequence: String,
    exchange: Exchange,
    difference: Difference,
}

/// Runs the suite and writes its section and the details.
///
/// # Errors
/// The real server is not installed or does not start, or a file cannot be read or written.
pub(super) async fn run(args: &Args) -> anyhow::Result<()> {
    let real_server = Server::start()?;
    let twin = Twin::start(false, None).await?;
    let place = |object: &Value| {
        let (id, namespaced) = twin.server.resource_of_kind(&object.gvk())?;
        Some((id.resource().to_owned(), namespaced))
    };
    let mut sequences = generate::sequences(&place, args.mutations)?;
    sequences.push(managers::sequence(args.shared, 1));
    for folder in &args.manifests {
        sequences.extend(manifests::sequences(folder, &place, args.edits, args.edited)?);
    }
    // Those by hand come last: they leave policies and definitions behind that would meddle.
    sequences.extend(corpus::read(&args.corpus)?);
    if let Some(filter) = &args.filter {
        sequences
            .retain(|sequence| sequence.name == "preparation" || sequence.name.contains(filter.as_str()));
    }
    let mut real = Peer::open(real_server.address(), real_server.token()).await?;
    let mut ours = Peer::open(&twin.address, twin.server.token()).await?;
    let (mut scores, mut found) = (BTreeMap::<String, Score>::new(), Vec::new());
    for sequence in &sequences {
        let score = send(sequence, &mut real, &mut ours, &mut found).await?;
        scores.entry(group(&sequence.name)).or_default().add(&score);
    }
    let text = section(&scores, &found)?;
    println!("{text}");
    write_details(&args.details, &found)?;
    if args.filter.is_none() {
        report::publish("requests", &text)?;
    }
    Ok(())
}

/// The row of the table in which a sequence is counted.
fn group(name: &str) -> String {
    match name.split(' ').next() {
        Some("verbs") => "generated: every verb of every kind".to_owned(),
        Some("mutated") => "generated: mutated objects".to_owned(),
        Some("managers") => "generated: three managers of the same objects".to_owned(),
        Some("edited") => "manifests: edited".to_owned(),
        Some("manifests:") => "manifests: definitions".to_owned(),
        Some("manifests") => "manifests: created with dry run".to_owned(),
        Some("preparation") => "generated: every verb of every kind".to_owned(),
        _ => format!("by hand: {name}"),
    }
}

async fn send(
    sequence: &Sequence,
    real: &mut Peer,
    ours: &mut Peer,
    found: &mut Vec<Found>,
) -> anyhow::Result<Score> {
    let mut score = Score::default();
    for exchange in &sequence.exchanges {
        let (expected, answer) = tokio::try_join!(real.send(exchange), ours.send(exchange))?;
        if expected.code == 201
            && let Some(collection) = defined(exchange)
        {
            until_served(&collection, real).await?;
        }
        let (is_error, difference) = compare(&expected, &answer);
        score.count(is_error, difference.as_ref());
        if let Some(difference) = difference {
            found.push(Found { sequence: sequence.name.clone(), exchange: exchange.clone(), difference });
        }
    }
    Ok(score)
}

/// The collection that a definition brings, if a request creates one.
fn defined(exchange: &Exchange) -> Option<String> {
    let (path, query) = exchange.path.split_once('?').unwrap_or((&exchange.path, ""));
    let is_definition = exchange.method == "POST"
        && path.ends_with("/customresourcedefinitions")
        && !query.contains("dryRun");
    let definition: Value = serde_json::from_str(&exchange.body).ok().filter(|_| is_definition)?;
    let spec = &definition["spec"];
    let version = spec["versions"].as_array()?.iter().find(|version| version["served"] == true)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(format!(
        "/apis/{}/{}/{}",
        text(&spec["group"])?,
        text(&version["name"])?,
        text(&spec["names"]["plural"])?
    ))
}

/// A real server takes a moment until it serves what a definition defines; the embedded one does at once.
async fn until_served(collection: &str, real: &mut Peer) -> anyhow::Result<()> {
    const TRIES: usize = 50;
    let list = Exchange::new("GET", collection, &Value::Null);
    for _ in 0..TRIES {
        if real.send(&list).await?.code == 200 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    // Definitions whose names clash are never served.
    Ok(())
}

fn section(scores: &BTreeMap<String, Score>, found: &[Found]) -> anyhow::Result<String> {
    let mut total = Score::default();
    scores.values().for_each(|score| total.add(score));
    let percent = |part: usize, all: usize| format!("{:.2} %", part as f64 * 100.0 / all.max(1) as f64);
    let mut text = String::from(
        "## The same requests to both\n\nMade by `cargo xtask conformance requests`. Left out of the comparison, wherever they stand: uids, times and ages, resource versions, allocated addresses, the made-up end of generated names, descriptions of table columns.\n\n",
    );
    writeln!(
        text,
        "{} requests: code and reason equal {}; messages of errors equal {}; objects equal {}.\n",
        total.requests,
        percent(total.codes, total.requests),
        percent(total.messages, total.errors),
        percent(total.objects, total.answers)
    )?;
    text.push_str("| requests | sent | code and reason equal | errors | message equal | answers | object equal |\n|---|--:|--:|--:|--:|--:|--:|\n");
    for (name, score) in scores.iter().map(|(name, score)| (name.as_str(), score)).chain([("all", &total)]) {
        let Score { requests, codes, errors, messages, answers, objects } = score;
        writeln!(text, "| {name} | {requests} | {codes} | {errors} | {messages} | {answers} | {objects} |")?;
    }
    text.push_str("\nDifferences by cause, the most frequent first:\n\n| times | what differs | for example |\n|--:|---|---|\n");
    for (cause, examples) in causes(found).iter().take(40) {
        let example = examples
            .first()
            .map(|found| format!("{} {}", found.exchange.method, found.exchange.path))
            .unwrap_or_default();
        writeln!(text, "| {} | {} | `{example}` |", examples.len(), cell(cause))?;
    }
    Ok(text)
}

/// Differences that are alike, the most frequent first.
fn causes(found: &[Found]) -> Vec<(String, Vec<&Found>)> {
    let mut causes = BTreeMap::<String, Vec<&Found>>::new();
    for one in found {
        causes.entry(cause(&one.difference)).or_default().push(one);
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(cause, examples)| (std::cmp::Reverse(examples.len()), cause.clone()));
    causes
}

fn cause(difference: &Difference) -> String {
    let head = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    match difference {
        Difference::Code { real, ours } => format!("code: real {}, ours {}", head(real), head(ours)),
        Difference::Message { real, ours } => {
            let real: Vec<_> = real.split(['"', '`', '\'']).step_by(2).collect();
            let ours: Vec<_> = ours.split(['"', '`', '\'']).step_by(2).collect();
            let (real, ours) = (real.join("…"), ours.join("…"));
            let cut = |text: &str| text.chars().take(110).collect::<String>();
            format!("message: real {}, ours {}", cut(&real), cut(&ours))
        }
        Difference::Object { path, .. } => format!("object: {path}"),
    }
}

/// Text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;")
}

fn write_details(path: &std::path::Path, found: &[Found]) -> anyhow::Result<()> {
    let mut text = String::new();
    for Found { sequence, exchange, difference } in found {
        writeln!(text, "[{sequence}] {} {} {}", exchange.method, exchange.path, exchange.content_type)?;
        if exchange.body.len() < 2_000 {
            writeln!(text, "  {}", exchange.body)?;
        }
        match difference {
            Difference::Code { real, ours } | Difference::Message { real, ours } => {
                writeln!(text, "  real {real}\n  ours {ours}\n")?;
            }
            Difference::Object { path, values } => writeln!(text, "  {path}: {values}\n")?,
        }
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    println!("every difference: {}", path.display());
    Ok(())
}
