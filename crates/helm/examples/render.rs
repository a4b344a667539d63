//! Renders a chart folder some times and tells how long one rendering takes: the raw material of the
//! benchmarks. `render CHART [TIMES]`; with 1 (the default) it prints what `helm template` prints.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program prints")]

use std::{error::Error, io::Write, sync::Arc, time::Instant};

use tiphys_helm::{Chart, RenderOptions, ValuesSource, template};
use tiphys_vfs::DiskTree;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let chart = args.next().ok_or("usage: render CHART [TIMES]")?;
    let times: u32 = args.next().map_or(Ok(1), |times| times.parse())?;
    let chart = Chart::load(&DiskTree::open(chart)?, "")?;
    let mut options = RenderOptions {
        release_name: "release-name".to_owned(),
        namespace: "default".to_owned(),
        ..RenderOptions::default()
    };
    if times == 1 {
        let output = template(&chart, &options)?;
        std::io::stdout().write_all(output.stdout.as_bytes())?;
        return Ok(());
    }
    let start = Instant::now();
    for round in 0..times {
        let values = format!("fullnameOverride: name-{round}\n");
        options.values = vec![ValuesSource::File("values.yaml".to_owned(), Arc::from(values.into_bytes()))];
        template(&chart, &options)?;
    }
    eprintln!("{:.3} ms per rendering", start.elapsed().as_secs_f64() * 1000.0 / f64::from(times));
    Ok(())
}
