//! `cargo xtask fidelity origins DIR`: does every field name what made it?
//!
//! A scalar of a rendered object counts as right if it names a template, and if changing one of the
//! values that it names changes it, or calling that value otherwise: what is made from the keys of a table.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tiphys_helm::{Chart, RenderOptions, ValuesSource, template};
use tiphys_value::{FieldPath, ObjectExt, OriginKind, RenderedObject, ResourceKey, Segment, Value};
use tiphys_vfs::DiskTree;

/// Options of the suite.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Chart folders.
    #[arg(required = true)]
    charts: Vec<PathBuf>,
    /// Values changed per chart, spread evenly over its fields.
    #[arg(long, default_value_t = 40)]
    sample: usize,
}

#[derive(Default)]
struct Count {
    leaves: usize,
    located: usize,
    tried: usize,
    right: usize,
}

/// Runs the suite.
///
/// # Errors
/// None: charts that do not render are left out.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let mut total = Count::default();
    for folder in &args.charts {
        let Some(count) = measure(folder, args.sample) else { continue };
        println!(
            "{}: {} of {} scalars located; {} of {} named values right",
            folder.display(),
            count.located,
            count.leaves,
            count.right,
            count.tried
        );
        total.leaves += count.leaves;
        total.located += count.located;
        total.tried += count.tried;
        total.right += count.right;
    }
    println!(
        "all: {} of {} scalars located; {} of {} named values right",
        total.located, total.leaves, total.right, total.tried
    );
    Ok(())
}

fn render(chart: &Chart, set: Option<String>) -> Option<BTreeMap<ResourceKey, RenderedObject>> {
    let options = RenderOptions {
        release_name: "release-name".to_owned(),
        namespace: "default".to_owned(),
        values: set.map(ValuesSource::SetJson).into_iter().collect(),
        origins: true,
        seed: Some("fidelity".to_owned()),
        ..RenderOptions::default()
    };
    let objects = template(chart, &options).ok()?.objects();
    Some(objects.into_iter().map(|object| (object.value.resource_key(), object)).collect())
}

fn measure(folder: &Path, sample: usize) -> Option<Count> {
    let chart = Chart::load(&DiskTree::open(folder).ok()?, "").ok()?;
    let objects = render(&chart, None)?;
    let defaults = std::fs::read_to_string(folder.join("values.yaml")).unwrap_or_default();
    let defaults: Value = tiphys_yaml::from_yaml(&defaults).ok()?;
    let mut count = Count::default();
    let mut named = Vec::new();
    for (key, object) in &objects {
        for path in FieldPath::leaves(&object.value) {
            count.leaves += 1;
            let chain = object.origins.lookup(&path);
            count.located += usize::from(chain.iter().any(|it| it.kind == OriginKind::Template));
            let reads = chain.iter().filter(|it| it.kind == OriginKind::Values);
            let reads: Vec<_> = reads.map(|it| it.detail.clone()).collect();
            if !reads.is_empty() {
                named.push((key, path, reads));
            }
        }
    }
    let step = (named.len() / sample.max(1)).max(1);
    for (key, path, reads) in named.iter().step_by(step) {
        let before = path.get(&objects[*key].value)?;
        // A chart may refuse a changed value; then the next one is tried.
        let sets = reads.iter().flat_map(|read| changes(read, before, &defaults));
        let after = sets.filter_map(|set| render(&chart, Some(set)));
        let mut differ = after
            .map(|after| after.get(*key).and_then(|object| path.get(&object.value)) != Some(before))
            .peekable();
        if differ.peek().is_none() {
            continue;
        }
        count.tried += 1;
        let right = differ.any(|differs| differs);
        if !right {
            println!("  {} {path}: changing {} changes nothing", key.kind, reads.join(", "));
        }
        count.right += usize::from(right);
    }
    Some(count)
}

/// `--set-json` texts that change a value: to another one of the field's type, to a text (what defaults to
/// `true` is `true` for `false`, too), and to a value of another name.
fn changes(detail: &str, field: &Value, defaults: &Value) -> Vec<String> {
    let Some(path) = detail.strip_prefix(".Values").and_then(|path| path.parse::<FieldPath>().ok()) else {
        return Vec::new();
    };
    // A switch may stand for its contrary.
    let of_type = match field {
        Value::Bool(_) => vec![Value::from(false), Value::from(true)],
        Value::Number(_) => vec![Value::from(77)],
        _ => Vec::new(),
    };
    let values = of_type.into_iter().chain([Value::from("changed")]);
    let sets = values.map(|value| format!("{}={value}", escaped(&path)));
    sets.chain(rename(&path, defaults)).collect()
}

/// A `--set-json` text that gives a value of the chart another key; `None` if it has none, or another chart
/// has it.
fn rename(path: &FieldPath, defaults: &Value) -> Option<String> {
    let value = path.get(defaults)?;
    let mut renamed = path.clone();
    match renamed.0.last_mut()? {
        Segment::Key(key) => key.push('x'),
        Segment::Index(_) => return None,
    }
    Some(format!("{}={value},{}=null", escaped(&renamed), escaped(path)))
}

/// A path as `--set` has it.
fn escaped(path: &FieldPath) -> String {
    let mut text = String::new();
    for segment in &path.0 {
        match segment {
            Segment::Key(key) => {
                let escaped = key.replace('\\', "\\\\").replace('.', "\\.").replace('=', "\\=");
                text.push_str(if text.is_empty() { "" } else { "." });
                text.push_str(&escaped);
            }
            Segment::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}
