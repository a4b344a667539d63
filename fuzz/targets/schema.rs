//! A chart's schema holds values against itself, whatever is in it; nothing panics, and it ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_helm::{Chart, RenderOptions, template};
use tiphys_vfs::MemTree;

fuzz_target!(|input: (&str, &str)| {
    let (schema, values) = input;
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: fuzz\nversion: 1.0.0\n"),
        ("values.yaml", values),
        ("values.schema.json", schema),
        ("templates/all.yaml", "kind: ConfigMap\n"),
    ];
    let Ok(chart) = Chart::load(&MemTree::from_files(files), "") else { return };
    let options = RenderOptions { release_name: "fuzz".to_owned(), ..RenderOptions::default() };
    let _ = template(&chart, &options);
});
