//! A packaged chart loads or is refused, whatever its bytes; nothing panics and no path leaves the chart.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_helm::Chart;

fuzz_target!(|bytes: &[u8]| {
    let Ok(chart) = Chart::load_archive(bytes, "fuzz.tgz") else { return };
    for file in chart.templates.iter().chain(chart.files.iter()) {
        assert!(
            !file.name.starts_with('/') && !file.name.split('/').any(|step| step == ".."),
            "{}",
            file.name
        );
    }
});
