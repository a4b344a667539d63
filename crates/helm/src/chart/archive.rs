//! Packaged charts: gzipped tar files whose every path starts with the chart's folder.

use std::{io::Read, sync::Arc};

use flate2::read::MultiGzDecoder;

use tiphys_gocompat::strconv::quote;

use super::ChartFile;
use crate::HelmError;

/// Helm's limit on the unpacked size of a chart, in bytes.
pub(crate) const MAX_CHART_SIZE: u64 = 100 * 1024 * 1024;

/// Helm's limit on the size of one file, in bytes.
pub(crate) const MAX_FILE_SIZE: u64 = 5 * 1024 * 1024;

/// Unpacks an archive that may take `budget` bytes, which are used up.
///
/// # Errors
/// No gzip, no tar, over a limit, or a path that leaves the chart's folder, in Helm's words.
pub(crate) fn unpack(bytes: &[u8], budget: &mut u64) -> Result<Vec<ChartFile>, HelmError> {
    // Headers and padding count too, so that a stream of empty entries ends.
    let limited = MultiGzDecoder::new(bytes).take(budget.saturating_mul(2).max(1024 * 1024));
    let mut archive = tar::Archive::new(limited);
    let mut files = Vec::new();
    let entries = archive.entries().map_err(|error| read_error(&error))?;
    for entry in entries {
        let mut entry = entry.map_err(|error| read_error(&error))?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if raw.ends_with('/') {
            continue;
        }
        let name = entry_name(&raw).map_err(HelmError::Load)?;
        let size = entry.size();
        if size > *budget {
            return Err(too_large());
        }
        if size > MAX_FILE_SIZE {
            return Err(HelmError::Load(format!(
                "decompressed chart file {} is larger than the maximum file size {MAX_FILE_SIZE}",
                quote(&raw)
            )));
        }
        let mut data = Vec::new();
        entry.read_to_end(&mut data).map_err(|error| read_error(&error))?;
        *budget = budget.saturating_sub(data.len() as u64);
        if (data.len() as u64) < size || *budget == 0 {
            return Err(too_large());
        }
        files.push(ChartFile::new(name, without_bom(data.into())));
    }
    if files.is_empty() {
        return Err(HelmError::Load("no files in chart archive".to_owned()));
    }
    Ok(files)
}

fn too_large() -> HelmError {
    HelmError::Load(format!("decompressed chart is larger than the maximum size {MAX_CHART_SIZE}"))
}

fn read_error(error: &std::io::Error) -> HelmError {
    if error.kind() == std::io::ErrorKind::InvalidInput {
        return HelmError::Load("gzip: invalid header".to_owned());
    }
    HelmError::Load(format!("unable to load chart archive: {error}"))
}

/// The path in the chart: the first step is dropped.
fn entry_name(raw: &str) -> Result<String, String> {
    let delimiter = if raw.contains('\\') { '\\' } else { '/' };
    let (first, rest) = raw.split_once(delimiter).unwrap_or((raw, ""));
    let name = rest.replace(delimiter, "/");
    if name.starts_with('/') {
        return Err("chart illegally contains absolute paths".to_owned());
    }
    let name = clean(&name);
    if name == "." {
        return Err(format!("chart illegally contains content outside the base directory: {}", quote(raw)));
    }
    if name.starts_with("..") {
        return Err("chart illegally references parent directory".to_owned());
    }
    let bytes = name.as_bytes();
    if bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && bytes[2] == b'/' {
        return Err("chart contains illegally named files".to_owned());
    }
    if first == "Chart.yaml" {
        return Err("chart yaml not in base directory".to_owned());
    }
    Ok(name)
}

/// Go's `path.Clean` of a relative path.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// The bytes without a UTF-8 byte order mark.
pub(crate) fn without_bom(data: Arc<[u8]>) -> Arc<[u8]> {
    match after_bom(&data) {
        rest if rest.len() < data.len() => Arc::from(rest),
        _ => data,
    }
}

/// The bytes behind a byte order mark, if there is one.
pub(crate) fn after_bom(data: &[u8]) -> &[u8] {
    data.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(data)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;

    use super::*;

    fn pack(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, data) in files {
            let mut header = tar::Header::new_gnu();
            // Written raw: the crate refuses the paths that are to be refused here.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(data.len() as u64);
            header.set_cksum();
            builder.append(&header, *data).unwrap();
        }
        let tar = builder.into_inner().unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&tar).unwrap();
        gzip.finish().unwrap()
    }

    fn names(files: &[(&str, &[u8])]) -> Result<Vec<String>, String> {
        let mut budget = MAX_CHART_SIZE;
        let files = unpack(&pack(files), &mut budget).map_err(|error| error.to_string())?;
        Ok(files.into_iter().map(|file| file.name.to_string()).collect())
    }

    #[test]
    fn drops_the_first_step_and_byte_order_marks() {
        assert_eq!(names(&[("c/Chart.yaml", b"a"), ("c/./t/../x", b"b")]).unwrap(), ["Chart.yaml", "x"]);
        let mut budget = MAX_CHART_SIZE;
        let files = unpack(&pack(&[("c/a", b"\xEF\xBB\xBFx")]), &mut budget).unwrap();
        assert_eq!(&**files[0].data().expect("known"), b"x");
    }

    #[test]
    fn refuses_paths_that_leave_the_chart() {
        for (name, expected) in [
            ("c/../../x", "chart illegally references parent directory"),
            ("c//etc/passwd", "chart illegally contains absolute paths"),
            ("x", "chart illegally contains content outside the base directory: \"x\""),
            ("c/C:/x", "chart contains illegally named files"),
            ("Chart.yaml/x", "chart yaml not in base directory"),
        ] {
            assert_eq!(names(&[(name, b"x")]), Err(expected.to_owned()), "{name}");
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let zeros = vec![0; 4 * 1024 * 1024];
        let bytes = pack(&[("c/a", &zeros), ("c/b", &zeros)]);
        let mut budget = 5 * 1024 * 1024;
        let error = unpack(&bytes, &mut budget).unwrap_err().to_string();
        assert!(error.contains("larger than the maximum size"), "{error}");
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..300, to: u8) {
            let mut budget = MAX_CHART_SIZE;
            let _ = unpack(&bytes, &mut budget);
            let mut damaged = pack(&[("c/Chart.yaml", b"name: x"), ("c/values.yaml", b"a: 1")]);
            let at = at % damaged.len();
            damaged[at] = to;
            let _ = unpack(&damaged, &mut budget);
        }
    }
}
