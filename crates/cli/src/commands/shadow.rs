//! `tiphys shadow`: what a controller beside another one has found.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    exit::WrongUse,
    output::{Format, print},
};

/// Look at what `tiphys controller --shadow` has written.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    Report(ReportArgs),
}

/// Say where the two engines agree, where they differ and how, and what could not be compared.
///
/// The input is what `tiphys controller --shadow` writes to stdout: one decision a line.
/// Of each Application and ApplicationSet the last one counts.
///
/// Exit codes: 0 both agree wherever they can be compared; 1 they differ; 2 wrong use.
///
/// Examples:
///   tiphys shadow report decisions.jsonl
///   kubectl logs deploy/tiphys-controller | tiphys shadow report
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct ReportArgs {
    /// File with decisions; - or nothing is stdin.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// How the report is written.
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// What is known of one Application or ApplicationSet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    kind: String,
    namespace: String,
    name: String,
    /// The differences, or why nothing can be compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<String>,
}

/// Decisions by what comes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    agrees: Vec<Found>,
    differs: Vec<Found>,
    /// The sources or the destination cannot be had from here, or the spec cannot be used.
    cannot_be_had: Vec<Found>,
    /// Lines that are no decisions, such as those of a log.
    other_lines: usize,
}

/// Runs the command.
///
/// # Errors
/// The input cannot be read, holds no decision, or the engines differ.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Command::Report(args) = &args.command;
    let text = read(args.file.as_deref())?;
    let report = report_of(&text);
    if report.count() == 0 {
        let why = "no decision is in the input: it is what `tiphys controller --shadow` writes to stdout";
        return Err(WrongUse(why.to_owned()).into());
    }
    print(args.output, &report.to_text(), &serde_json::to_value(&report)?)?;
    match report.differs.len() {
        0 => Ok(()),
        count => anyhow::bail!("the engines differ about {count} of {}", report.count()),
    }
}

fn read(file: Option<&Path>) -> anyhow::Result<String> {
    let bytes = match file.filter(|file| *file != Path::new("-")) {
        Some(file) => fs::read(file).with_context(|| file.display().to_string())?,
        None => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).context("stdin")?;
            bytes
        }
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn report_of(text: &str) -> Report {
    let mut report = Report::default();
    let mut last = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let decision = serde_json::from_str::<Value>(line).ok();
        let Some(decision) = decision.filter(|decision| decision.str_at(&["action"]).is_some()) else {
            report.other_lines += 1;
            continue;
        };
        let text = |key: &str| decision.str_at(&[key]).unwrap_or_default().to_owned();
        last.insert((text("kind"), text("namespace"), text("name")), decision);
    }
    for ((kind, namespace, name), decision) in last {
        let differs = decision["differs"].as_array().into_iter().flatten();
        let differs: Vec<String> = differs.filter_map(Value::as_str).map(str::to_owned).collect();
        let reason = decision.str_at(&["reason"]).unwrap_or_default().to_owned();
        // Without a sync status nothing was compared.
        let is_compared = decision.str_at(&["sync"]).is_some() || decision["action"] == "generate";
        let is_asked_to_go = decision["action"] == "delete";
        let (list, why) = match (differs.is_empty(), is_compared || is_asked_to_go) {
            (false, _) => (&mut report.differs, differs),
            (true, true) => (&mut report.agrees, Vec::new()),
            (true, false) => (&mut report.cannot_be_had, vec![reason]),
        };
        list.push(Found { kind, namespace, name, why });
    }
    report
}

impl Report {
    fn count(&self) -> usize {
        self.agrees.len() + self.differs.len() + self.cannot_be_had.len()
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "{} of {} agree, {} differ, {} cannot be had\n",
            self.agrees.len(),
            self.count(),
            self.differs.len(),
            self.cannot_be_had.len()
        );
        for (title, list) in [("differs", &self.differs), ("cannot be had", &self.cannot_be_had)] {
            for Found { kind, namespace, name, why } in list {
                text.push_str(&format!("\n{title}: {kind} {namespace}/{name}\n"));
                why.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
            }
        }
        if self.other_lines > 0 {
            text.push_str(&format!(
                "\n{} lines of the input are not decisions of a controller\n",
                self.other_lines
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_decision_of_each_counts() {
        let lines = [
            r#"{"kind":"Application","namespace":"argocd","name":"a","action":"none","sync":"Synced","differs":["health: Healthy there, Degraded here"]}"#,
            r#"{"kind":"Application","namespace":"argocd","name":"a","action":"none","sync":"Synced"}"#,
            r#"{"kind":"Application","namespace":"argocd","name":"b","action":"sync","sync":"OutOfSync","differs":["sync status: Synced there, OutOfSync here"]}"#,
            r#"{"kind":"Application","namespace":"argocd","name":"c","action":"refuse","reason":"no such chart"}"#,
            r#"{"kind":"ApplicationSet","namespace":"argocd","name":"s","action":"generate"}"#,
            "INFO connected",
        ];
        let report = report_of(&lines.join("\n"));
        let names = |list: &[Found]| list.iter().map(|found| found.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&report.agrees), ["a", "s"]);
        assert_eq!(names(&report.differs), ["b"]);
        assert_eq!(names(&report.cannot_be_had), ["c"]);
        let text = report.to_text();
        assert!(text.starts_with("2 of 4 agree, 1 differ, 1 cannot be had\n"), "{text}");
        assert!(text.contains("cannot be had: Application argocd/c\n  no such chart\n"), "{text}");
        assert!(text.ends_with("1 lines of the input are not decisions of a controller\n"), "{text}");
    }
}
