//! Parts of charts.

use std::{io::Write as _, sync::Arc};

use tiphys_gotemplate::{Env, Functions, Limits, Map, TemplateSet, Value};
use tiphys_helm::{Chart, RenderOptions, ValuesSource};
use tiphys_vfs::MemTree;

use crate::input::{files, parts, text};

const CHART: &str = "apiVersion: v2\nname: fuzz\nversion: 1.0.0\n";

/// A packaged chart loads or is refused, whatever its bytes, and no path leaves the chart. The input: the
/// files of a chart as one text, the bytes of a `.tar`, or those of a `.tgz`. What is not packed is packed
/// first, so that changes of it reach what reads it.
///
/// # Panics
/// A path leaves the chart.
pub fn archive(bytes: &[u8]) {
    const PACKED: &[u8] = &[0x1f, 0x8b];
    let files = text(bytes).map(files).unwrap_or_default();
    let bytes = match (bytes.starts_with(PACKED), files.is_empty()) {
        (true, _) => bytes.to_vec(),
        (false, true) => packed(bytes),
        (false, false) => packed(&tar_of(&files)),
    };
    let Ok(chart) = Chart::load_archive(&bytes, "fuzz.tgz") else { return };
    for file in chart.templates.iter().chain(chart.files.iter()) {
        let leaves = file.name.starts_with('/') || file.name.split('/').any(|step| step == "..");
        assert!(!leaves, "{}", file.name);
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes it")
}

fn tar_of(files: &[(&str, String)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // A path that no archive can hold is left out.
        let _ = tar.append_data(&mut header, path, content.as_bytes());
    }
    tar.into_inner().expect("memory takes it")
}

/// A template parses or fails, and ends within its limits.
pub fn template(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let mut set = TemplateSet::new(Arc::new(Functions::sprig()));
    if set.parse("fuzz", text).is_err() {
        return;
    }
    let values = Map::new();
    values.insert("name", "x");
    values.insert("count", Value::Float64(3.0));
    values.insert("list", Value::strings(["a", "b"]));
    let mut env = Env::system();
    env.limits = Limits { depth: 100, output: 1 << 20, steps: 100_000, ..Limits::default() };
    let _ = Arc::new(set).execute("fuzz", Value::Map(values), &env, None);
}

/// Values files and `--set` texts are read or refused. The first byte of the input is which of them it is.
pub fn values(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let Some(text) = text(rest) else { return };
    let source = match kind % 5 {
        0 => ValuesSource::File("fuzz".to_owned(), Arc::from(text.as_bytes())),
        1 => ValuesSource::Set(text.to_owned()),
        2 => ValuesSource::SetString(text.to_owned()),
        3 => ValuesSource::SetJson(text.to_owned()),
        _ => ValuesSource::SetLiteral(text.to_owned()),
    };
    render(
        &[
            ("values.yaml", "a: {b: 1}\nlist: [1, 2]\nglobal: {x: y}\n"),
            ("templates/all.yaml", "kind: ConfigMap\ndata:\n  {{- .Values | toYaml | nindent 2 }}\n"),
        ],
        vec![source],
    );
}

/// A chart's schema holds values against itself, whatever is in it. The input: schema, values.
pub fn schema(bytes: &[u8]) {
    let Some([schema, values]) = text(bytes).map(parts) else { return };
    render(
        &[
            ("values.yaml", values),
            ("values.schema.json", schema),
            ("templates/all.yaml", "kind: ConfigMap\n"),
        ],
        Vec::new(),
    );
}

fn render(files: &[(&str, &str)], values: Vec<ValuesSource>) {
    let files = files.iter().copied().chain([("Chart.yaml", CHART)]);
    let Ok(chart) = Chart::load(&MemTree::from_files(files), "") else { return };
    let options = RenderOptions { release_name: "fuzz".to_owned(), values, ..RenderOptions::default() };
    let _ = tiphys_helm::template(&chart, &options);
}
