//! Values files and `--set` texts are read or refused; nothing panics.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tiphys_helm::{Chart, RenderOptions, ValuesSource, template};
use tiphys_vfs::MemTree;

const FILES: [(&str, &str); 3] = [
    ("Chart.yaml", "apiVersion: v2\nname: fuzz\nversion: 1.0.0\n"),
    ("values.yaml", "a: {b: 1}\nlist: [1, 2]\nglobal: {x: y}\n"),
    ("templates/all.yaml", "kind: ConfigMap\ndata:\n  {{- .Values | toYaml | nindent 2 }}\n"),
];

fuzz_target!(|input: (u8, &str)| {
    let (kind, text) = input;
    let source = match kind % 5 {
        0 => ValuesSource::File("fuzz".to_owned(), Arc::from(text.as_bytes())),
        1 => ValuesSource::Set(text.to_owned()),
        2 => ValuesSource::SetString(text.to_owned()),
        3 => ValuesSource::SetJson(text.to_owned()),
        _ => ValuesSource::SetLiteral(text.to_owned()),
    };
    let Ok(chart) = Chart::load(&MemTree::from_files(FILES), "") else { return };
    let options =
        RenderOptions { release_name: "fuzz".to_owned(), values: vec![source], ..RenderOptions::default() };
    let _ = template(&chart, &options);
});
