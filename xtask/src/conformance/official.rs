//! `cargo xtask conformance official`: the official end-to-end tests of the API machinery and of kubectl on the
//! embedded cluster.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf, process::Stdio};

use anyhow::Context;
use serde_json::Value;

use super::{report, twin::Twin};

/// Options of the suite.
#[derive(clap::Args)]
pub struct Args {
    /// Tests whose name matches this regular expression.
    #[arg(long, default_value = r"\[sig-(api-machinery|cli)\].*\[Conformance\]")]
    focus: String,
    /// Tests that are left out: by default those whose subject is a real container that serves a webhook or an API.
    #[arg(long, default_value = "AdmissionWebhook|CustomResourceConversionWebhook|Aggregator")]
    skip: String,
    /// How long the whole run may take.
    #[arg(long, default_value = "40m")]
    timeout: String,
    /// Where to write the tests' own report and output.
    #[arg(long, default_value = "target/official")]
    output: PathBuf,
    /// Publish the figures in docs/conformance.md.
    #[arg(long)]
    publish: bool,
}

/// Runs the tests and writes the section.
///
/// # Errors
/// The tests are not installed or do not start, or a file cannot be written; failed tests are no error.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let program = tiphys_oracles::find("e2e")?;
    let kubectl = tiphys_oracles::find("kubectl")?;
    fs::create_dir_all(&args.output)?;
    let output = args.output.canonicalize()?;
    let kubeconfig = output.join("kubeconfig");
    let twin = Twin::start(true, Some(&kubeconfig)).await?;
    let log = fs::File::create(output.join("output.txt"))?;
    let mut command = tokio::process::Command::new(program);
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--kubectl-path={}", kubectl.display()))
        .arg(format!("--host=https://{}", twin.address))
        .args(["--provider=skeleton", "--ginkgo.no-color", "--delete-namespace=true"])
        .args(["--dump-logs-on-failure=false", "--num-nodes=3"])
        .arg(format!("--ginkgo.focus={}", args.focus))
        .arg(format!("--ginkgo.skip={}", args.skip))
        .arg(format!("--ginkgo.timeout={}", args.timeout))
        .arg(format!("--ginkgo.json-report={}", output.join("report.json").display()))
        .current_dir(&output)
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let status = command.status().await.context("start the tests")?;
    println!("the tests ended with {status}; their output: {}", output.join("output.txt").display());
    let text = fs::read_to_string(output.join("report.json")).context("the tests left no report")?;
    let section = section(&serde_json::from_str(&text)?, &args.skip)?;
    println!("{section}");
    if args.publish { report::publish("official", &section) } else { Ok(()) }
}

fn section(report: &Value, skip: &str) -> anyhow::Result<String> {
    let reports = report[0]["SpecReports"].as_array();
    let is_test = |spec: &&Value| spec["LeafNodeType"] == "It" && spec["State"] != "skipped";
    let tests: Vec<_> = reports.into_iter().flatten().filter(is_test).collect();
    let (passed, failed): (Vec<_>, Vec<_>) = tests.into_iter().partition(|spec| spec["State"] == "passed");
    let all = passed.len() + failed.len();
    let mut text = String::from(
        "## The official tests\n\nMade by `cargo xtask conformance official --publish`: test/e2e of Kubernetes 1.36.1, \
         the conformance tests of [sig-api-machinery] and [sig-cli].\n\n",
    );
    if !skip.is_empty() {
        let skipped = skip.replace('|', ", ");
        let why = "their subject is a real container that serves a webhook or an API";
        writeln!(text, "Left out, because {why}: {skipped}.\n")?;
    }
    let percent = passed.len() as f64 * 100.0 / all.max(1) as f64;
    writeln!(text, "{} of {all} pass ({percent:.0} %).\n", passed.len())?;
    let mut groups = BTreeMap::<String, (usize, usize)>::new();
    for (specs, is_passed) in [(&passed, true), (&failed, false)] {
        for spec in specs.iter() {
            let group = spec["ContainerHierarchyTexts"][0].as_str().unwrap_or_default().to_owned();
            let (ok, of) = groups.entry(group).or_default();
            *ok += usize::from(is_passed);
            *of += 1;
        }
    }
    text.push_str("| tests | passed | of |\n|---|--:|--:|\n");
    for (group, (ok, of)) in &groups {
        writeln!(text, "| {group} | {ok} | {of} |")?;
    }
    if !failed.is_empty() {
        text.push_str("\n| failed | why |\n|---|---|\n");
    }
    for spec in &failed {
        let name = spec["LeafNodeText"].as_str().unwrap_or_default();
        let why = spec["Failure"]["Message"].as_str().unwrap_or_default();
        let why: String = why.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        writeln!(text, "| {name} | {} |", why.replace('|', "\\|").replace('<', "&lt;"))?;
    }
    Ok(text)
}
