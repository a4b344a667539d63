//! `cargo xtask conformance controllers`: the same sequences of steps on the embedded world and on a real control
//! plane, and what they come to.
//!
//! KWOK plays the kubelets of the real one: what a kubelet itself does is not compared.

mod cluster;
mod compare;
mod embedded;
mod real;
mod section;
mod sequence;
mod state;

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::Value;
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_oracles::RealControlPlane;
use tiphys_value::ObjectExt;
use tiphys_world::{Settings, initial_objects};
use tokio::{sync::Semaphore, task::JoinSet};

use self::{
    cluster::{Cluster, play},
    compare::Comparison,
    embedded::Embedded,
    real::Plane,
    section::Outcome,
    sequence::Sequence,
    state::State,
};
use super::{corpus::Exchange, report};

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with `sequences/`, `bases.yaml`, `rules.yaml`, `stages.yaml` and `differences.yaml`.
    #[arg(long, default_value = "xtask/data/controllers")]
    data: PathBuf,
    /// Only sequences whose name contains this; nothing is published then.
    #[arg(long)]
    filter: Option<String>,
    /// How many sequences are played on the real control plane at the same time.
    #[arg(long, default_value_t = 24)]
    parallel: usize,
    /// Where to write every difference.
    #[arg(long, default_value = "target/controllers.txt")]
    details: PathBuf,
    /// Folder in which what the real control plane came to is kept, a file for each sequence.
    #[arg(long, default_value = "target/controllers")]
    recorded: PathBuf,
    /// Compare with what was recorded and start no real control plane; nothing is published if a
    /// sequence was not.
    #[arg(long)]
    replay: bool,
    /// Write the section of `docs/conformance.md`.
    #[arg(long)]
    publish: bool,
}

/// Plays all sequences on both and writes every difference.
///
/// # Errors
/// With `CI=true` that a program is missing; a cluster that does not start; a file that cannot be read or written.
pub(super) async fn run(args: &Args) -> anyhow::Result<()> {
    if !args.replay
        && let missing = RealControlPlane::missing()
        && !missing.is_empty()
    {
        let missing = missing.join(", ");
        anyhow::ensure!(std::env::var("CI").as_deref() != Ok("true"), "needs {missing}");
        println!("skipped: needs {missing}");
        return Ok(());
    }
    let server = ApiServer::new(ApiServerOptions::default())?;
    let places = |object: &Value| {
        let (id, namespaced) = server.resource_of_kind(&object.gvk())?;
        Some((id.resource().to_owned(), namespaced))
    };
    let mut sequences = sequence::read(&args.data.join("sequences"), &args.data.join("bases.yaml"), &places)?;
    if let Some(filter) = &args.filter {
        sequences.retain(|sequence| sequence.name.contains(filter.as_str()));
    }
    let began = Instant::now();
    let rules = read(args, "rules.yaml")?;
    let number = sequences.len();
    let outcomes = match args.replay {
        true => replay(&sequences, &rules, args).await?,
        false => play_all(sequences, &rules, args).await?,
    };
    let differences = section::explanations(&read(args, "differences.yaml")?)?;
    let text = section::section(&outcomes, &differences);
    println!("{text}\nin {:.0} s", began.elapsed().as_secs_f64());
    section::write_details(&args.details, &outcomes)?;
    if args.publish && args.filter.is_none() && outcomes.len() == number {
        report::publish("controllers", &text)?;
    }
    Ok(())
}

fn read(args: &Args, name: &str) -> anyhow::Result<String> {
    let path = args.data.join(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Plays sequences on both. Those that change nodes have a real control plane for themselves, one after the
/// other, while the rest is played side by side on a second one.
async fn play_all(sequences: Vec<Sequence>, rules: &str, args: &Args) -> anyhow::Result<Vec<Outcome>> {
    fs::create_dir_all(&args.recorded)?;
    let (alone, together): (Vec<_>, Vec<_>) = sequences.into_iter().partition(|it| it.is_alone);
    let (mut outcomes, others) =
        tokio::try_join!(play_in_turn(alone, rules, args), play_together(together, rules, args))?;
    outcomes.extend(others);
    outcomes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(outcomes)
}

async fn play_in_turn(sequences: Vec<Sequence>, rules: &str, args: &Args) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    if sequences.is_empty() {
        return Ok(outcomes);
    }
    let plane = Plane::start(&read(args, "stages.yaml")?, first_objects()?).await?;
    for sequence in sequences {
        let outcome = on_both(&sequence, rules, &plane, args.recorded.clone()).await?;
        tidy_up(&sequence, &plane).await?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

async fn play_together(sequences: Vec<Sequence>, rules: &str, args: &Args) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    if sequences.is_empty() {
        return Ok(outcomes);
    }
    let plane = Arc::new(Plane::start(&read(args, "stages.yaml")?, first_objects()?).await?);
    let turns = Arc::new(Semaphore::new(args.parallel.max(1)));
    let mut tasks = JoinSet::new();
    for sequence in sequences {
        let (plane, rules, turns) = (Arc::clone(&plane), rules.to_owned(), Arc::clone(&turns));
        let recorded = args.recorded.clone();
        tasks.spawn(async move {
            let _turn = turns.acquire_owned().await?;
            on_both(&sequence, &rules, &plane, recorded).await
        });
    }
    while let Some(outcome) = tasks.join_next().await {
        outcomes.push(outcome??);
    }
    Ok(outcomes)
}

/// The nodes and the class that the embedded world has, for the real control plane too.
fn first_objects() -> anyhow::Result<Vec<(String, Value)>> {
    let path = |(resource, object): (tiphys_value::GroupVersionResource, Value)| {
        let root =
            if resource.group.is_empty() { "api".to_owned() } else { format!("apis/{}", resource.group) };
        (format!("/{root}/{}/{}", resource.version, resource.resource), object)
    };
    Ok(initial_objects(&Settings::default()).into_iter().map(path).collect())
}

async fn on_both(
    sequence: &Sequence,
    rules: &str,
    plane: &Plane,
    recorded: PathBuf,
) -> anyhow::Result<Outcome> {
    let in_words = || format!("the sequence {}", sequence.name);
    let real = play(sequence, &mut plane.client().await?).await.with_context(in_words)?;
    fs::write(recorded.join(format!("{}.json", sequence.name)), serde_json::to_string(&real)?)?;
    let ours = play(sequence, &mut Embedded::start(rules).await?).await.with_context(in_words)?;
    Ok(outcome(sequence, &State::from_played(&real, sequence), &State::from_played(&ours, sequence)))
}

fn outcome(sequence: &Sequence, real: &State, ours: &State) -> Outcome {
    let comparison = Comparison::from_states(real, ours);
    Outcome { family: sequence.family.clone(), name: sequence.name.clone(), comparison }
}

/// Plays sequences on the embedded world only.
async fn replay(sequences: &[Sequence], rules: &str, args: &Args) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for sequence in sequences {
        let path = args.recorded.join(format!("{}.json", sequence.name));
        let Ok(text) = fs::read_to_string(&path) else {
            println!("{} was not recorded", sequence.name);
            continue;
        };
        let real = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let ours = play(sequence, &mut Embedded::start(rules).await?).await;
        let ours = ours.with_context(|| format!("the sequence {}", sequence.name))?;
        outcomes.push(outcome(
            sequence,
            &State::from_played(&real, sequence),
            &State::from_played(&ours, sequence),
        ));
    }
    Ok(outcomes)
}

/// Takes away what a sequence did to nodes, and what it made, so that the next one finds the cluster as
/// it was.
async fn tidy_up(sequence: &Sequence, plane: &Plane) -> anyhow::Result<()> {
    const TRIES: usize = 120;
    let mut client = plane.client().await?;
    // Pods go only while their kubelets work.
    for (collection, node) in first_objects()?.into_iter().filter(|(_, object)| object.kind() == "Node") {
        plane.restore(&collection, node).await?;
    }
    let namespace = format!("/api/v1/namespaces/{}", sequence.name);
    client.send(&Exchange::new("DELETE", namespace.clone(), &Value::Null)).await?;
    for _ in 0..TRIES {
        if client.send(&Exchange::new("GET", namespace.clone(), &Value::Null)).await?.code == 404 {
            return Ok(());
        }
        client.wait(Duration::from_millis(500)).await;
    }
    println!("{} does not go", sequence.name);
    Ok(())
}
