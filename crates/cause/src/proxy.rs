//! Access logs of Envoy: the status that a proxy answered, why it gave it itself, and for which host.

use crate::{
    network::Failure,
    pattern::{has_any, pattern},
};

pattern!(
    ACCESS,
    r#"^\[[^\]]+\] "[A-Z-]+ [^"]*" (\d{1,3}) ([A-Z,]{2,}) (.*?)\boutbound(?:_\.\d+_\.[^|\s]*)?\|(\d{1,5})\|([^|]*)\|([a-z0-9._-]+)"#
);
pattern!(CLUSTER, r"outbound(?:_\.\d+_\.[^|\s]*)?\|(\d{1,5})\|([^|]*)\|([a-z0-9._-]+)");

/// An answer that a proxy gave without the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// Envoy's response flags, as `UO` or `UF,URX`.
    pub flags: String,
    /// What it says more about the failure: `upstream_reset_before_response_started{connection_timeout}`.
    pub details: String,
    /// The host that the request was for, as the mesh names it.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What each of Envoy's flags says about the call behind the proxy. Flags that are not here are about the
/// caller, or about limits that were set on purpose. A status stands for what the caller is answered.
const FLAGS: &[(&str, Failure)] = &[
    ("UH", Failure::NoEndpoint),
    ("NC", Failure::NoEndpoint),
    ("UF", Failure::Refused),
    ("UC", Failure::Reset),
    ("UR", Failure::Reset),
    ("UT", Failure::Timeout),
    ("UPE", Failure::Plaintext),
    ("DF", Failure::LookupTimeout),
    ("UO", Failure::Status(503)),
    ("NR", Failure::Status(404)),
    ("UAEX", Failure::MeshDenied),
];

/// Words of the details that tell more about a connection than the flag.
const DETAILS: &[(&[&str], Failure)] = &[
    (&["timeout", "error: 110"], Failure::Timeout),
    (&["certificate_verify_failed", "unknown_ca", "certificate_unknown"], Failure::Untrusted),
    (&["wrong_version_number", "ssl_error", "tls_error", "tls error"], Failure::Plaintext),
    (&["error: 113", "error: 101", "no route to host"], Failure::Unreachable),
    (&["connection_termination", "remote_reset", "error: 104"], Failure::Reset),
];

impl ProxyAnswer {
    /// Whether the flag is one of those.
    #[must_use]
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.split(',').any(|known| known == flag)
    }

    /// How the call behind the proxy failed; `None` if the caller went away or was refused on purpose.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let (_, failure) = FLAGS.iter().find(|(flag, _)| self.has_flag(flag))?;
        let low = self.details.to_ascii_lowercase();
        let of_details = DETAILS.iter().find(|(words, _)| has_any(&low, words)).map(|(_, failure)| *failure);
        // Words about connections tell more only where a connection failed.
        let is_connection = matches!(failure, Failure::Refused | Failure::Reset);
        Some(of_details.filter(|_| is_connection).unwrap_or(*failure))
    }
}

/// Reads a line of Envoy's access log, in its usual format or as an object; `None` for answers of the other
/// side.
#[must_use]
pub fn proxy_answer(line: &str) -> Option<ProxyAnswer> {
    if line.starts_with('{') {
        return of_object(line);
    }
    let it = ACCESS.captures(line)?;
    Some(ProxyAnswer {
        status: it[1].parse().ok()?,
        flags: it[2].to_owned(),
        details: it[3].to_owned(),
        host: it[6].to_owned(),
        port: it[4].parse().ok()?,
    })
}

/// Reads a line in which each field has its name.
fn of_object(line: &str) -> Option<ProxyAnswer> {
    let flags = field(line, "response_flags").filter(|flags| flags.chars().any(char::is_alphabetic))?;
    let cluster = CLUSTER.captures(field(line, "upstream_cluster")?)?;
    let details = ["response_code_details", "upstream_transport_failure_reason"];
    Some(ProxyAnswer {
        status: field(line, "response_code")?.parse().ok()?,
        flags: flags.to_owned(),
        details: details.iter().filter_map(|name| field(line, name)).collect::<Vec<_>>().join(" "),
        host: cluster[3].to_owned(),
        port: cluster[1].parse().ok()?,
    })
}

/// The value of a field of an object in one line, without its quotes.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    let rest = rest.trim_start();
    match rest.strip_prefix('"') {
        Some(text) => text.split('"').next(),
        None => rest.split([',', '}']).next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(status: &str, details: &str) -> String {
        format!(
            r#"[2026-05-04T10:00:00.001Z] "GET /v1 HTTP/1.1" {status} {details} - "-" 0 81 0 - "-" "-" "r" "shop" "-" outbound|8080|v1|cart.shop.svc.cluster.local - 10.0.0.1:80 10.0.0.2:1 - -"#
        )
    }

    #[test]
    fn answers_of_the_proxy_itself() {
        let read = proxy_answer(&line("503 UO", "overflow")).unwrap();
        assert_eq!((read.status, read.port, read.host.as_str()), (503, 8080, "cart.shop.svc.cluster.local"));
        assert!(read.has_flag("UO") && !read.has_flag("UF"));
        assert_eq!(proxy_answer(&line("200 -", "via_upstream")), None);
        assert_eq!(proxy_answer("GET /v1 503"), None);
    }

    #[test]
    fn what_a_flag_tells_of_the_call_behind_the_proxy() {
        let read =
            |status: &str, details: &str| proxy_answer(&line(status, details)).and_then(|it| it.failure());
        let reset = |why: &str| format!("upstream_reset_before_response_started{{{why}}}");
        assert_eq!(read("503 UH", "no_healthy_upstream"), Some(Failure::NoEndpoint));
        assert_eq!(read("503 UF,URX", &reset("connection_timeout")), Some(Failure::Timeout));
        assert_eq!(read("503 UF,URX", &reset("connection_failure")), Some(Failure::Refused));
        assert_eq!(read("503 UC", &reset("connection_termination")), Some(Failure::Reset));
        assert_eq!(read("504 UT", "response_timeout"), Some(Failure::Timeout));
        assert_eq!(read("0 DC", "downstream_remote_disconnect"), None);
        let object = r#"{"response_code":503,"response_flags":"UF","response_code_details":"x","upstream_transport_failure_reason":"TLS_error:|268435703:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER","upstream_cluster":"outbound|443||pay.shop.svc.cluster.local"}"#;
        assert_eq!(proxy_answer(object).unwrap().failure(), Some(Failure::Plaintext));
        assert_eq!(proxy_answer(&object.replace("\"UF\"", "\"-\"")), None);
    }
}
