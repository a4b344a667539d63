//! Prints the findings of a folder, fetching nothing: `cargo run -p tiphys-check --example findings -- DIR
//! [RULE…]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::{error::Error, sync::Arc};

use tiphys_check::{Context, Survey, check, rules};
use tiphys_graph::Input;
use tiphys_vfs::DiskTree;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    // `--url=TEXT`: addresses with this text mean the folder; without it, every address does.
    let (url, wanted): (Vec<String>, Vec<String>) = arguments.partition(|text| text.starts_with("--url="));
    let given = move |address: &str| {
        url.iter().all(|url| address.to_lowercase().contains(url.trim_start_matches("--url=")))
    };
    let survey =
        Survey::read(&Input { is_given: &given, ..Input::alone(Arc::new(DiskTree::open(&folder)?)) });
    let chosen: Vec<_> = rules::ALL
        .iter()
        .copied()
        .filter(|rule| wanted.is_empty() || wanted.iter().any(|id| id == rule.id))
        .collect();
    let checked = check(&Context::new(&survey, None), &chosen);
    let map = survey.files.source_map();
    for finding in &checked.findings {
        println!("{}", tiphys_diag::render::full(&finding.diagnostic, &map, false));
    }
    println!(
        "{} files, {} Applications, {} objects: {} findings",
        survey.files.count(),
        survey.apps.len(),
        survey.objects.len(),
        checked.findings.len()
    );
    Ok(())
}
