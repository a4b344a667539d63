//! Failed calls over the network, in the words of clients: Go, Java, Python, Node, Rust, C, curl, nginx,
//! Envoy.

use crate::{
    address::{Address, addresses},
    pattern::{has_any, pattern},
};

/// How a call failed. The kind tells where to look: no answer, no listener, no name, no trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// Nobody answered in time.
    Timeout,
    /// The address answered that nobody listens.
    Refused,
    /// The other side ended the connection.
    Reset,
    /// There is no way to the address.
    Unreachable,
    /// The name does not exist.
    NoSuchHost,
    /// The name server did not answer.
    LookupTimeout,
    /// The other side's certificate is not trusted.
    Untrusted,
    /// The other side's certificate has expired.
    Expired,
    /// The other side's certificate is not valid yet.
    NotYetValid,
    /// One side speaks TLS, the other does not.
    Plaintext,
    /// The other side answered with this status of HTTP.
    Status(u16),
    /// A proxy has no endpoint to send it to.
    NoEndpoint,
    /// The mesh's policy refuses the caller.
    MeshDenied,
    /// The redirects never end.
    RedirectLoop,
}

/// A call that failed, as a line of a log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// How it failed.
    pub failure: Failure,
    /// The addresses that the line names, the likeliest target first.
    pub targets: Vec<Address>,
    /// Addresses that lines shortly before name.
    pub context: Vec<Address>,
    /// The line.
    pub line: String,
}

const NO_HOST: &[&str] = &[
    "no such host",
    "name or service not known",
    "enotfound",
    "no resolvable bootstrap urls",
    "unknownhostexception",
    "nodename nor servname provided",
    "could not resolve host",
    "could not translate host name",
    "host not found",
    "bad address '",
    "bad address \"",
    "nxdomain",
    "unknown mysql server host",
    "getaddrinfo failed",
    "name does not resolve",
    "no address associated with hostname",
    "failed to lookup address information",
    "dns resolution failed",
    "name resolution failure",
    "couldn't resolve host",
    "couldn't resolve server",
    "unable to resolve host",
    "cannot resolve",
    "no known hosts",
];
const LOOKUP_SLOW: &[&str] = &[
    "eai_again",
    "temporary failure in name resolution",
    "server misbehaving",
    "servfail",
    "resolver timed out",
    "dns timeout",
];
const REFUSED: &[&str] = &[
    "connection refused",
    "econnrefused",
    "connectionrefusederror",
    "actively refused",
    "errno 111",
    "(111)",
    "could not be established. broker may not be available",
    "could not be established. node may not be available",
    "failed to connect to bootstrap server",
    "connection failure",
    "- no response",
];
const TIMEOUT: &[&str] = &[
    "i/o timeout",
    "deadline exceeded",
    "timed out",
    "etimedout",
    "connect timeout",
    "connection timeout",
    "connecttimeout",
    "timeout exceeded",
    "client.timeout",
    "timeoutexception",
    "request timeout",
    "timeout while",
    "timeout awaiting",
    "esockettimedout",
    "(110)",
    "errno 110",
    "timeout expired",
    "timeout of ",
    "timeouterror",
];
const RESET: &[&str] = &[
    "connection reset",
    "econnreset",
    "socket hang up",
    "broken pipe",
    "epipe",
    "connection closed before",
    "unexpected eof",
    ": eof",
    "remote end closed connection",
    "server closed the connection unexpectedly",
    "empty reply from server",
    "connection termination",
    "disconnect/reset before headers",
    "remotedisconnected",
    "premature end of file",
    "recv failure",
];
const UNREACHABLE: &[&str] =
    &["no route to host", "network is unreachable", "ehostunreach", "enetunreach", "host is unreachable"];
const EXPIRED: &[&str] = &[
    "certificate has expired",
    "certificate expired",
    "cert_has_expired",
    "certificateexpiredexception",
    "certificate is expired",
    "certificate is no longer valid",
    "certificate: not valid anymore",
    // Java tells of time as of the only check of validity.
    "validity check failed",
    "notafter:",
];
const EARLY: &[&str] = &["not yet valid", "is not valid yet", "certificatenotyetvalid"];
const UNTRUSTED: &[&str] = &[
    "unknown authority",
    "unable to verify the first certificate",
    "certificate verify failed",
    "certificate_verify_failed",
    "self-signed certificate",
    "self signed certificate",
    "unable to get local issuer",
    "pkix path building failed",
    "certificate signed by unknown",
    "bad certificate",
    "certificate is valid for",
    "not valid for any names",
    "doesn't contain any ip sans",
    "cannot validate certificate for",
    "unable to find valid certification path",
    "unknown ca",
    "unknownissuer",
    "invalid peer certificate",
    "unable_to_verify_leaf_signature",
    "self_signed_cert_in_chain",
    "untrustedroot",
    "no subject alternative",
    "does not match certificate",
];
const PLAIN: &[&str] = &[
    "first record does not look like a tls handshake",
    "wrong version number",
    "http: server gave http response to https client",
    "plain http request was sent to https port",
    "client sent an http request to an https server",
    "unsupported or unrecognized ssl message",
    "ssl routines:ssl3_get_record",
    "packet length too long",
    "malformed http response",
];

pattern!(
    STATUS,
    r#"(?ix)
    \b(?: status (?:[\s_]?code)? | http (?:/[0-9.]+)? | code | response | returned | answered | got | with | error )
    ["']? \s* [:=]? \s* (?: error \s )? (?: code \s* )? (?: status \s )? (\d{3}) \b
    | : \s (\d{3}) \s (?: Gone | Bad \s Gateway | Service \s Unavailable | Gateway \s Time-?out | Internal \s Server \s Error | Forbidden | Unauthorized | Not \s Found | Too \s Many \s Requests | Temporarily \s Unavailable)
    | \b (502|503|504) \s (?: Bad \s Gateway | Service \s (?:Temporarily \s)? Unavailable | Gateway \s Time-?out)
    "#
);

impl Failure {
    /// How a line says that a call failed; `None` if it does not.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let low = line.to_ascii_lowercase();
        let is_lookup = has_any(&low, &["lookup ", "getaddrinfo", "resolv", "dns"]);
        let found = if has_any(&low, LOOKUP_SLOW)
                || is_lookup && low.contains("lookup ") && has_any(&low, TIMEOUT)
                // Go names the server that it asked: that one refuses, and not the host that is looked up.
                || low.contains("lookup ") && low.contains(":53:") && has_any(&low, REFUSED)
        {
            Self::LookupTimeout
        } else if has_any(&low, NO_HOST) {
            Self::NoSuchHost
        } else if low.contains("not yet valid: current time") && low.contains(" is before ") {
            // Go says both in one sentence, and then which of them it is.
            Self::NotYetValid
        } else if has_any(&low, EXPIRED) {
            Self::Expired
        } else if has_any(&low, EARLY) && has_any(&low, &["certificate", "x509"]) {
            Self::NotYetValid
        } else if has_any(&low, UNTRUSTED) {
            Self::Untrusted
        } else if has_any(&low, PLAIN) {
            Self::Plaintext
        } else if low.contains("rbac: access denied") {
            Self::MeshDenied
        } else if has_any(
            &low,
            &[
                "too many redirects",
                "err_too_many_redirects",
                "redirect loop",
                "maximum redirects",
                "stopped after 10 redirects",
            ],
        ) {
            Self::RedirectLoop
        } else if has_any(&low, &["no healthy upstream", "no endpoints available", "no live upstreams"]) {
            Self::NoEndpoint
        } else if low.contains("connection timeout") || has_any(&low, TIMEOUT) {
            Self::Timeout
        } else if has_any(&low, REFUSED) {
            Self::Refused
        } else if has_any(&low, UNREACHABLE) {
            Self::Unreachable
        } else if has_any(&low, RESET) {
            Self::Reset
        } else {
            return status(line);
        };
        Some(found)
    }
}

/// The status of HTTP that a line complains about: of a server, or of one that no longer serves.
fn status(line: &str) -> Option<Failure> {
    let found = STATUS.captures(line)?;
    let code: u16 = found.iter().skip(1).flatten().next()?.as_str().parse().ok()?;
    matches!(code, 401 | 403 | 404 | 410 | 429 | 500..=599).then_some(Failure::Status(code))
}

/// How many lines before a failure are searched for the address that it does not name.
const BEFORE: usize = 12;

/// The failed calls of a log, each kind of line once.
#[must_use]
pub fn failed_calls(log: &str) -> Vec<FailedCall> {
    let lines: Vec<&str> = log.lines().collect();
    let mut calls: Vec<FailedCall> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let line: &str = clipped(line);
        let Some(failure) = Failure::read(line) else { continue };
        let mut targets = addresses(line);
        if matches!(failure, Failure::NoSuchHost | Failure::LookupTimeout) {
            // What is asked comes first, the name server that was asked is no target.
            targets.retain(|target| target.port != Some(53));
        }
        if calls.iter().any(|call| call.failure == failure && call.targets == targets) {
            continue;
        }
        let near = lines[at.saturating_sub(BEFORE)..at].iter().rev();
        let context = near.flat_map(|line| addresses(clipped(line))).collect();
        calls.push(FailedCall { failure, targets, context, line: line.to_owned() });
    }
    calls
}

/// The start of a line: what is longer is no message.
pub(crate) fn clipped(line: &str) -> &str {
    const LONGEST: usize = 2000;
    let mut end = line.len().min(LONGEST);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_of_the_past_and_of_the_future() {
        let sentence =
            "x509: certificate has expired or is not yet valid: current time 2026-01-01T00:01:00Z is";
        let read = |rest: &str| Failure::read(&format!("{sentence} {rest}"));
        assert_eq!(read("before 2026-02-01T00:00:00Z"), Some(Failure::NotYetValid));
        assert_eq!(read("after 2025-02-01T00:00:00Z"), Some(Failure::Expired));
    }

    #[test]
    fn clients_of_many_languages() {
        for (line, failure) in [
            ("dial tcp 10.96.14.8:5672: connect: connection refused", Failure::Refused),
            ("Error: connect ECONNREFUSED 10.1.2.3:5432", Failure::Refused),
            ("dial tcp: lookup db on 10.96.0.10:53: no such host", Failure::NoSuchHost),
            (
                "dial tcp: lookup db on 10.96.0.10:53: read udp 10.1.1.1:4->10.96.0.10:53: i/o timeout",
                Failure::LookupTimeout,
            ),
            (
                "psycopg2.OperationalError: could not translate host name \"db\" to address: Temporary failure in name resolution",
                Failure::LookupTimeout,
            ),
            ("Get \"https://10.96.0.1:443/api\": dial tcp 10.96.0.1:443: i/o timeout", Failure::Timeout),
            ("java.net.SocketTimeoutException: connect timed out", Failure::Timeout),
            ("read tcp 10.1.1.1:1->10.2.2.2:80: read: connection reset by peer", Failure::Reset),
            ("x509: certificate signed by unknown authority", Failure::Untrusted),
            ("x509: certificate has expired or is not yet valid: current time", Failure::Expired),
            ("GET http://api/: unexpected status code 503", Failure::Status(503)),
            ("no healthy upstream for web:80", Failure::NoEndpoint),
        ] {
            assert_eq!(Failure::read(line), Some(failure), "{line}");
        }
        assert_eq!(Failure::read("listening on 0.0.0.0:8080"), None);
        assert_eq!(Failure::read("GET /ready 200"), None);
    }

    #[test]
    fn the_address_may_stand_in_a_line_before() {
        let calls = failed_calls(
            "connecting to amqp://queue.mq.svc:5672\nFATAL dial tcp 10.9.9.9:5672: connect: connection refused\n",
        );
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].context[0].to_string(), "queue.mq.svc:5672");
    }
}
