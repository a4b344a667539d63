//! How many requests were answered (Kubernetes, "Kubernetes Metrics Reference", `apiserver_request_total`).

use std::{collections::HashMap, fmt::Write as _};

use http::{Method, StatusCode};
use parking_lot::Mutex;

/// Counts by method and code, over all resources together.
#[derive(Default)]
pub(crate) struct RequestCounts(Mutex<HashMap<(Method, StatusCode), u64>>);

impl RequestCounts {
    pub(super) fn count(&self, method: &Method, code: StatusCode) {
        *self.0.lock().entry((method.clone(), code)).or_default() += 1;
    }

    /// The counts in Prometheus' text format, in the order of their labels.
    pub(super) fn text(&self) -> String {
        let counts = self.0.lock();
        let mut rows: Vec<(&str, u16, u64)> =
            counts.iter().map(|((method, code), count)| (method.as_str(), code.as_u16(), *count)).collect();
        rows.sort_unstable();
        let mut text = String::from("# TYPE apiserver_request_total counter\n");
        for (verb, code, count) in rows {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "apiserver_request_total{{verb=\"{verb}\",code=\"{code}\"}} {count}");
        }
        text
    }
}
