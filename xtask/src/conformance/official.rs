//! `cargo xtask conformance official`: the official end-to-end tests of the API machinery and of kubectl on
//! the embedded cluster. Every test runs in a process of its own, so that one that waits for ever costs no
//! other.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

use super::{report, twin::Twin};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Tests whose name matches this regular expression.
    #[arg(long, default_value = r"\[sig-(api-machinery|cli)\].*\[Conformance\]")]
    focus: String,
    /// Tests that are left out: by default those whose subject is a real container that serves a webhook or
    /// an API, and those that wait for minutes.
    #[arg(long, default_value = r"AdmissionWebhook|CustomResourceConversionWebhook|Aggregator|\[Slow\]")]
    skip: String,
    /// How long one test may take.
    #[arg(long, default_value = "90s")]
    timeout: String,
    /// Tests at a time.
    #[arg(long, default_value_t = 3)]
    jobs: usize,
    /// Where to write the tests' own reports and output.
    #[arg(long, default_value = "target/official")]
    output: PathBuf,
    /// Publish the figures in docs/conformance.md.
    #[arg(long)]
    publish: bool,
}

/// The programs and the cluster.
struct Bench {
    e2e: PathBuf,
    kubectl: PathBuf,
    output: PathBuf,
    address: String,
}

/// What came of one test.
struct Outcome {
    group: String,
    name: String,
    is_passed: bool,
    why: String,
}

/// Runs the tests and writes the section.
///
/// # Errors
/// The tests are not installed or do not start, or a file cannot be written; failed tests are no error.
pub(super) async fn run(args: &Args) -> anyhow::Result<()> {
    fs::create_dir_all(&args.output)?;
    let output = args.output.canonicalize()?;
    let twin = Twin::start(true, Some(&output.join("kubeconfig"))).await?;
    let bench = Bench {
        e2e: tiphys_oracles::find("e2e")?,
        kubectl: tiphys_oracles::find("kubectl")?,
        output,
        address: twin.address.clone(),
    };
    let names = list(&bench, args).await?;
    println!("{} tests", names.len());
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || async {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run_test(&bench, name, &args.timeout).await?;
            println!("{} {name}", if outcome.is_passed { "ok    " } else { "failed" });
            outcomes.lock().expect("nothing panics while it is held").push(outcome);
        }
        anyhow::Ok(())
    };
    futures::future::try_join_all((0..args.jobs.max(1)).map(|_| worker())).await?;
    let mut outcomes = outcomes.into_inner().expect("nothing panics while it is held");
    outcomes.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
    let section = section(&outcomes, &args.skip)?;
    println!("{section}");
    if args.publish { report::publish("official", &section) } else { Ok(()) }
}

/// The full names of the tests.
async fn list(bench: &Bench, args: &Args) -> anyhow::Result<Vec<String>> {
    let report = bench.output.join("list.json");
    let flags = [
        "--ginkgo.dry-run".to_owned(),
        format!("--ginkgo.focus={}", args.focus),
        format!("--ginkgo.skip={}", args.skip),
    ];
    start(bench, &flags, &report).await?;
    Ok(specs(&report)?.iter().map(full_name).collect())
}

async fn run_test(bench: &Bench, name: &str, timeout: &str) -> anyhow::Result<Outcome> {
    let digits: String =
        name.bytes().fold(5381u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(byte)).to_string();
    let report = bench.output.join(format!("{digits}.json"));
    let flags = [format!("--ginkgo.focus={}", escaped(name)), format!("--ginkgo.timeout={timeout}")];
    start(bench, &flags, &report).await?;
    let specs = specs(&report)?;
    let spec =
        specs.iter().find(|spec| full_name(spec) == name).with_context(|| format!("no report of {name}"))?;
    let group = spec["ContainerHierarchyTexts"][0].as_str().unwrap_or_default().to_owned();
    let leaf = spec["LeafNodeText"].as_str().unwrap_or_default().to_owned();
    let is_passed = spec["State"] == "passed";
    let message = spec["Failure"]["Message"].as_str().unwrap_or_default();
    let why = match spec["State"].as_str() {
        Some("timedout" | "interrupted") => format!("not done after {timeout}"),
        _ => one_line(bench, message).chars().take(200).collect(),
    };
    Ok(Outcome { group, name: leaf, is_passed, why })
}

/// A message on one line, without what differs from machine to machine.
fn one_line(bench: &Bench, message: &str) -> String {
    let text = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace(&format!("--server=https://{} ", bench.address), "");
    let text = text.replace(&format!("--kubeconfig={}/kubeconfig ", bench.output.display()), "");
    text.replace(&bench.kubectl.display().to_string(), "kubectl")
}

async fn start(bench: &Bench, flags: &[String], report: &Path) -> anyhow::Result<()> {
    let log = fs::File::create(report.with_extension("txt"))?;
    let status = Command::new(&bench.e2e)
        .arg(format!("--kubeconfig={}", bench.output.join("kubeconfig").display()))
        .arg(format!("--kubectl-path={}", bench.kubectl.display()))
        .arg(format!("--host=https://{}", bench.address))
        .args(["--provider=skeleton", "--ginkgo.no-color", "--delete-namespace=true"])
        .args(["--dump-logs-on-failure=false", "--num-nodes=3", "--ginkgo.grace-period=5s"])
        .args(flags)
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .current_dir(&bench.output)
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status();
    status.await.context("start the tests").map(drop)
}

/// The tests of a report that were run, or would be.
fn specs(report: &Path) -> anyhow::Result<Vec<Value>> {
    let text =
        fs::read_to_string(report).with_context(|| format!("the tests left no {}", report.display()))?;
    let report: Value = serde_json::from_str(&text)?;
    let all = report[0]["SpecReports"].as_array().cloned().unwrap_or_default();
    let is_test = |spec: &Value| spec["LeafNodeType"] == "It" && spec["State"] != "skipped";
    Ok(all.into_iter().filter(is_test).collect())
}

fn full_name(spec: &Value) -> String {
    let parents = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten();
    let texts = parents.chain([&spec["LeafNodeText"]]).filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join(" ")
}

/// A text as a regular expression that matches nothing else.
fn escaped(text: &str) -> String {
    let escape = |c: char| if r"\.+*?()|[]{}^$".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}

fn section(outcomes: &[Outcome], skip: &str) -> anyhow::Result<String> {
    let passed = outcomes.iter().filter(|outcome| outcome.is_passed).count();
    let mut text = String::from(
        "## The official tests\n\nMade by `cargo xtask conformance official --publish`: test/e2e of Kubernetes 1.36.1, \
         the conformance tests of [sig-api-machinery] and [sig-cli].\n\n",
    );
    if !skip.is_empty() {
        let skipped = skip.replace('|', ", ").replace('\\', "");
        let why =
            "their subject is a real container that serves a webhook or an API, or they wait for minutes";
        writeln!(text, "Left out, because {why}: {skipped}.\n")?;
    }
    let percent = passed as f64 * 100.0 / outcomes.len().max(1) as f64;
    writeln!(text, "{passed} of {} pass ({percent:.0} %).\n", outcomes.len())?;
    let mut groups = BTreeMap::<&str, (usize, usize)>::new();
    for outcome in outcomes {
        let (ok, of) = groups.entry(&outcome.group).or_default();
        *ok += usize::from(outcome.is_passed);
        *of += 1;
    }
    text.push_str("| tests | passed | of |\n|---|--:|--:|\n");
    for (group, (ok, of)) in &groups {
        writeln!(text, "| {group} | {ok} | {of} |")?;
    }
    if passed < outcomes.len() {
        text.push_str("\n| failed | why |\n|---|---|\n");
    }
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_passed) {
        writeln!(text, "| {} | {} |", outcome.name, outcome.why.replace('|', "\\|").replace('<', "&lt;"))?;
    }
    Ok(text)
}
