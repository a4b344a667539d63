//! `cargo xtask conformance invalid`: objects that break one rule each, sent to both servers.

mod cases;
mod mutate;

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use tiphys_schema::Catalog;
use tiphys_value::ObjectExt;

use self::cases::Case;
use super::{
    api_client::{Answer, Peer},
    corpus::Exchange,
    report,
    twin::Twin,
};
use crate::schema::Server;

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with the base objects (`bases.yaml`) and the rules by hand (`rules.yaml`).
    #[arg(long, default_value = "crates/apiserver/tests/invalid")]
    folder: PathBuf,
    /// Only bases whose name starts with this; nothing is published then.
    #[arg(long)]
    filter: Option<String>,
    /// Writes every n-th refused case with the real server's answer to `expected.jsonl` of the folder.
    #[arg(long)]
    freeze: Option<usize>,
    /// Writes all cases with the real server's answers to this file.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Where to write every difference.
    #[arg(long, default_value = "target/invalid.txt")]
    details: PathBuf,
}

/// How many cases of a base one of the servers refuses, and how many of these agree.
#[derive(Clone, Copy, Default)]
struct Score {
    sent: usize,
    refused: usize,
    equal: usize,
    messages: usize,
}

/// What the suite learned.
#[derive(Default)]
struct Outcome {
    scores: BTreeMap<String, Score>,
    details: String,
    record: String,
    frozen: String,
    /// Cases that the real server gives no answer to.
    unanswered: usize,
}

/// Runs the suite and writes its section and the details.
///
/// # Errors
/// The real server is not installed or does not start, or a file cannot be read or written.
pub(super) async fn run(args: &Args) -> anyhow::Result<()> {
    let bases = read(&args.folder.join("bases.yaml"))?;
    let rules = cases::read_rules(&read(&args.folder.join("rules.yaml"))?)?;
    let real_server = Server::start()?;
    let twin = Twin::start(false, None).await?;
    let mut real = Peer::open(real_server.address(), real_server.token()).await?;
    let mut ours = Peer::open(&twin.address, twin.server.token()).await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let prepare = Exchange::new("POST", "/api/v1/namespaces/default/serviceaccounts", &account);
    tokio::try_join!(real.send(&prepare), ours.send(&prepare))?;
    let mut outcome = Outcome::default();
    for (name, base) in bases.as_object().into_iter().flatten() {
        if args.filter.as_ref().is_some_and(|filter| !name.starts_with(filter.as_str())) {
            continue;
        }
        let catalog = Catalog::latest();
        let mut cases = vec![Case { base: name.clone(), edits: Vec::new() }];
        cases.extend(rules.iter().filter(|case| case.base == *name).cloned());
        if let Some(ty) = catalog.type_of(&base.gvk()) {
            cases.extend(mutate::cases(name, base, catalog, ty));
        }
        let (id, namespaced) = (twin.server.resource_of_kind(&base.gvk()))
            .with_context(|| format!("nothing serves {name}'s kind"))?;
        let root = if base.api_version().contains('/') { "/apis" } else { "/api" };
        let scope = if namespaced { "/namespaces/default" } else { "" };
        let path = format!(
            "{root}/{}{scope}/{}?dryRun=All&fieldValidation=Strict",
            base.api_version(),
            id.resource()
        );
        for case in &cases {
            let exchange = Exchange::new("POST", path.clone(), &case.object(base)?);
            let (expected, answer) = tokio::try_join!(real.send(&exchange), ours.send(&exchange))?;
            outcome.add(case, &expected, &answer, args.freeze);
        }
        let score = outcome.scores.get(name).copied().unwrap_or_default();
        println!("{name}: {} sent, {} refused, {} equal", score.sent, score.refused, score.equal);
    }
    outcome.write(args)
}

fn read(path: &std::path::Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    tiphys_yaml::from_yaml(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}

/// What is compared: code, reason, and of each cause field and type, in any order.
fn verdict(answer: &Answer) -> Value {
    if answer.code < 400 {
        return json!({"code": answer.code});
    }
    let causes = answer.body["details"]["causes"].as_array();
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let mut causes: Vec<String> = causes
        .into_iter()
        .flatten()
        .map(|cause| format!("{} {}", text(cause, "field"), text(cause, "reason")))
        .collect();
    causes.sort();
    json!({"code": answer.code, "reason": answer.body["reason"], "causes": causes})
}

impl Outcome {
    fn add(&mut self, case: &Case, real: &Answer, ours: &Answer, freeze: Option<usize>) {
        // A handler of the real server that ends in a panic gives no answer.
        if real.code == 0 {
            self.unanswered += 1;
            return;
        }
        let (expected, found) = (verdict(real), verdict(ours));
        let edits: Vec<Value> = case.edits.iter().map(cases::Edit::to_json).collect();
        let mut line = json!({"base": case.base, "edits": edits, "answer": expected});
        if edits.is_empty() && real.code >= 400 {
            println!("{}: the base itself is refused: {}", case.base, real.body["message"]);
        }
        if expected == found && real.code >= 400 {
            let refused: usize = self.scores.values().map(|score| score.equal).sum();
            if freeze.is_some_and(|every| refused.is_multiple_of(every.max(1))) {
                self.frozen.push_str(&format!("{line}\n"));
            }
        }
        let messages =
            [real, ours].map(|answer| answer.body["message"].as_str().unwrap_or_default().to_owned());
        line["message"] = messages[0].clone().into();
        self.record.push_str(&format!("{line}\n"));
        let score = self.scores.entry(case.base.clone()).or_default();
        score.sent += 1;
        if real.code < 400 && ours.code < 400 {
            return;
        }
        score.refused += 1;
        score.equal += usize::from(expected == found);
        score.messages += usize::from(messages[0] == messages[1]);
        if expected != found {
            let edits: Value = edits.into();
            let [real, ours] = messages;
            self.details.push_str(&format!(
                "{} {edits}\n  real {expected}\n  ours {found}\n  real: {real}\n  ours: {ours}\n\n",
                case.base
            ));
        }
    }

    fn write(&self, args: &Args) -> anyhow::Result<()> {
        if let Some(folder) = args.details.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&args.details, &self.details)?;
        if let Some(path) = &args.record {
            fs::write(path, &self.record)?;
        }
        if args.freeze.is_some() {
            fs::write(args.folder.join("expected.jsonl"), &self.frozen)?;
        }
        let section = self.section()?;
        println!("{section}\nevery difference: {}", args.details.display());
        if args.filter.is_none() {
            report::publish("invalid", &section)?;
        }
        Ok(())
    }

    fn section(&self) -> anyhow::Result<String> {
        let mut total = Score::default();
        for score in self.scores.values() {
            total.sent += score.sent;
            total.refused += score.refused;
            total.equal += score.equal;
            total.messages += score.messages;
        }
        let percent = |part: usize| format!("{:.2} %", part as f64 * 100.0 / total.refused.max(1) as f64);
        let mut text = String::from(
            "## Invalid objects\n\nMade by `cargo xtask conformance invalid`: base objects with one field changed at a time, and rules about several fields. Counted are the objects that one of the two servers refuses.\n\n",
        );
        writeln!(
            text,
            "{} objects, {} refused: code, reason, fields and types of causes equal {}; messages equal {}.\n",
            total.sent,
            total.refused,
            percent(total.equal),
            percent(total.messages)
        )?;
        writeln!(
            text,
            "The real server gives no answer to {} more: its handler ends in a panic.\n",
            self.unanswered
        )?;
        text.push_str("| base | sent | refused | equal | messages equal |\n|---|--:|--:|--:|--:|\n");
        for (name, Score { sent, refused, equal, messages }) in &self.scores {
            writeln!(text, "| {name} | {sent} | {refused} | {equal} | {messages} |")?;
        }
        Ok(text)
    }
}
