//! What the webhook of cert-manager refuses in Certificates and issuers, in its words (cert-manager,
//! `internal/apis/certmanager/validation`). Only what is certain from the object alone; forms of names and
//! addresses are left to it.

use tiphys_gocompat::time::Duration;
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::{
    placeholders,
    pods::{list, text},
};

/// One thing that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FieldRefusal {
    /// The field; it may be missing.
    pub field: FieldPath,
    /// `spec.commonName: Too long: may not be more than 64 bytes`.
    pub message: String,
    /// Whether it is a value that is invalid, not one that is missing or forbidden.
    pub is_invalid_value: bool,
}

const HOUR: i64 = 3_600 * Duration::SECOND.0;
/// What a certificate lasts if it does not say so.
const USUAL_DURATION: Duration = Duration(90 * 24 * HOUR);
const LEAST_DURATION: Duration = Duration(HOUR);
const LEAST_RENEWAL: Duration = Duration(300 * Duration::SECOND.0);
const LONGEST_COMMON_NAME: usize = 64;

/// Collects faults below a field.
struct Faults {
    found: Vec<FieldRefusal>,
}

impl Faults {
    fn add(&mut self, field: FieldPath, what: &str) {
        let path = field.to_string();
        let message = format!("{}: {what}", path.trim_start_matches('.'));
        self.found.push(FieldRefusal { field, message, is_invalid_value: false });
    }

    fn required(&mut self, field: FieldPath, detail: &str) {
        self.add(
            field,
            &if detail.is_empty() {
                "Required value".to_owned()
            } else {
                format!("Required value: {detail}")
            },
        );
    }

    fn invalid(&mut self, field: FieldPath, value: &str, detail: &str) {
        self.add(field, &format!("Invalid value: {value}: {detail}"));
        if let Some(last) = self.found.last_mut() {
            last.is_invalid_value = true;
        }
    }

    fn forbidden(&mut self, field: FieldPath, detail: &str) {
        self.add(field, &format!("Forbidden: {detail}"));
    }
}

/// Whether a field is there with something in it.
fn is_set(value: &Value, key: &str) -> bool {
    match value.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(all)) => !all.is_empty(),
        Some(_) => true,
    }
}

/// Whether a field that the schema asks for is there with nothing in it; one that is missing the schema
/// refuses.
fn is_empty(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_str) == Some("")
}

/// Whether a field is an object or list, even an empty one.
fn is_given(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|it| !it.is_null())
}

/// What is refused in a Certificate.
pub(crate) fn of_certificate(spec: &Value) -> Vec<FieldRefusal> {
    let at = FieldPath::default().key("spec");
    let mut faults = Faults { found: Vec::new() };
    if is_empty(spec, "secretName") {
        faults.required(at.key("secretName"), "must be specified");
    }
    issuer(spec, &at, &mut faults);
    names(spec, &at, &mut faults);
    key(spec, &at, &mut faults);
    times(spec, &at, &mut faults);
    if let Some(limit) = spec.int_at(&["revisionHistoryLimit"]).filter(|limit| *limit < 1) {
        faults.invalid(at.key("revisionHistoryLimit"), &limit.to_string(), "must not be less than 1");
    }
    let annotations = spec.at(&["secretTemplate", "annotations"]).and_then(Value::as_object);
    for name in annotations.into_iter().flatten().map(|(name, _)| name) {
        if name.starts_with("cert-manager.io/") && name != "cert-manager.io/allow-direct-injection" {
            let field = at.key("secretTemplate").key("annotations");
            faults.invalid(field, &format!("{name:?}"), "cert-manager.io/* annotations are not allowed");
        }
    }
    faults.found
}

fn issuer(spec: &Value, at: &FieldPath, faults: &mut Faults) {
    let issuer = spec.get("issuerRef").unwrap_or(&Value::Null);
    let at = at.key("issuerRef");
    if is_empty(issuer, "name") {
        faults.required(at.key("name"), "must be specified");
    }
    let (group, kind) = (text(issuer, "group"), text(issuer, "kind"));
    if matches!(group, "" | "cert-manager.io") && !matches!(kind, "" | "Issuer" | "ClusterIssuer") {
        let hint = if group.is_empty() { " (did you forget to set spec.issuerRef.kind.group?)" } else { "" };
        let detail = format!("must be one of Issuer or ClusterIssuer{hint}");
        faults.invalid(at.key("kind"), &format!("{kind:?}"), &detail);
    }
}

fn names(spec: &Value, at: &FieldPath, faults: &mut Faults) {
    const NAMES: [&str; 7] =
        ["commonName", "literalSubject", "dnsNames", "uris", "emailAddresses", "ipAddresses", "otherNames"];
    if NAMES.iter().all(|name| !is_set(spec, name)) {
        let detail = "at least one of commonName (from the commonName field or from a literalSubject), dnsNames, emailSANs, ipAddresses, otherNames, or uriSANs must be set";
        faults.invalid(at.clone(), "\"\"", detail);
    }
    let common = text(spec, "commonName");
    if common.len() > LONGEST_COMMON_NAME && !placeholders::is_in(common) {
        faults.add(
            at.key("commonName"),
            &format!("Too long: may not be more than {LONGEST_COMMON_NAME} bytes"),
        );
    }
    for (index, address) in list(spec, "ipAddresses").iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        if address.parse::<std::net::IpAddr>().is_err() && !placeholders::is_in(address) {
            let field = at.key("ipAddresses").index(index);
            faults.invalid(field, &format!("{address:?}"), "invalid IP address");
        }
    }
}

fn key(spec: &Value, at: &FieldPath, faults: &mut Faults) {
    let size = spec.int_at(&["privateKey", "size"]).filter(|size| *size > 0);
    let field = at.key("privateKey").key("size");
    match (spec.str_at(&["privateKey", "algorithm"]).unwrap_or_default(), size) {
        ("" | "RSA", Some(size)) if !(2_048..=8_192).contains(&size) => {
            faults.invalid(field, &size.to_string(), "must be between 2048 and 8192 for rsa keyAlgorithm");
        }
        ("ECDSA", Some(size)) if !matches!(size, 256 | 384 | 521) => {
            faults.add(
                field,
                &format!("Unsupported value: {size}: supported values: \"256\", \"384\", \"521\""),
            );
        }
        _ => {}
    }
}

fn times(spec: &Value, at: &FieldPath, faults: &mut Faults) {
    let read = |key: &str| spec.str_at(&[key]).map(Duration::parse);
    // What is no duration the API server refuses itself.
    let (Ok(duration), Ok(before)) = (read("duration").transpose(), read("renewBefore").transpose()) else {
        return;
    };
    // Its words give durations in nanoseconds.
    let value = |duration: Duration| duration.0.to_string();
    let lasts = duration.unwrap_or(USUAL_DURATION);
    if lasts < LEAST_DURATION {
        let detail = format!("certificate duration must be greater than {LEAST_DURATION}");
        faults.invalid(at.key("duration"), &value(lasts), &detail);
    }
    let Some(before) = before else { return };
    let field = at.key("renewBefore");
    if before < LEAST_RENEWAL {
        let detail = format!("certificate renewBefore must be greater than {LEAST_RENEWAL}");
        faults.invalid(field.clone(), &value(before), &detail);
    }
    if before >= lasts {
        let detail = format!("certificate duration {lasts} must be greater than renewBefore {before}");
        faults.invalid(field, &value(before), &detail);
    }
}

/// What is refused in an Issuer or ClusterIssuer.
pub(crate) fn of_issuer(spec: &Value) -> Vec<FieldRefusal> {
    const TYPES: [&str; 5] = ["acme", "ca", "selfSigned", "vault", "venafi"];
    let at = FieldPath::default().key("spec");
    let mut faults = Faults { found: Vec::new() };
    let mut given = TYPES.into_iter().filter(|kind| is_given(spec, kind));
    let Some(first) = given.next() else {
        faults.required(at, "at least one issuer must be configured");
        return faults.found;
    };
    let inner = spec.get(first).unwrap_or(&Value::Null);
    match first {
        "acme" => acme(inner, &at.key("acme"), &mut faults),
        "ca" if is_empty(inner, "secretName") => faults.required(at.key("ca").key("secretName"), ""),
        "vault" => {
            for name in ["server", "path"].into_iter().filter(|name| is_empty(inner, name)) {
                faults.required(at.key("vault").key(name), "");
            }
        }
        _ => {}
    }
    for other in given {
        faults.forbidden(at.key(other), "may not specify more than one issuer type");
    }
    faults.found
}

fn acme(acme: &Value, at: &FieldPath, faults: &mut Faults) {
    if acme.str_at(&["privateKeySecretRef", "name"]) == Some("") {
        let field = at.key("privateKeySecretRef").key("name");
        faults.required(field, "private key secret name is a required field");
    }
    if is_empty(acme, "server") {
        faults.required(at.key("server"), "acme server URL is a required field");
    }
    for (index, solver) in list(acme, "solvers").iter().enumerate() {
        let at = at.key("solvers").index(index);
        let (http, dns) = (is_given(solver, "http01"), is_given(solver, "dns01"));
        if http {
            http01(&solver["http01"], &at.key("http01"), faults);
        }
        if http && dns {
            faults.forbidden(at.clone(), "may not specify more than one solver type in a single solver");
        } else if dns {
            dns01(&solver["dns01"], &at.key("dns01"), faults);
        } else if !http {
            faults.required(at, "no solver type configured");
        }
    }
}

fn http01(http: &Value, at: &FieldPath, faults: &mut Faults) {
    let ingress = http.get("ingress").filter(|ingress| !ingress.is_null());
    if let Some(ingress) = ingress {
        let given =
            [is_given(ingress, "class"), is_given(ingress, "ingressClassName"), is_set(ingress, "name")];
        if given.iter().filter(|it| **it).count() > 1 {
            let detail = "only one of 'ingressClassName', 'name' or 'class' should be specified";
            faults.forbidden(at.key("ingress"), detail);
        }
    }
    match (ingress.is_some(), is_given(http, "gatewayHTTPRoute")) {
        (false, false) => faults.required(at.clone(), "no HTTP01 solver type configured"),
        (true, true) => faults.required(at.clone(), "only 1 HTTP01 solver type may be configured"),
        _ => {}
    }
}

fn dns01(dns: &Value, at: &FieldPath, faults: &mut Faults) {
    const PROVIDERS: [&str; 9] = [
        "akamai",
        "azureDNS",
        "cloudDNS",
        "cloudflare",
        "route53",
        "acmeDNS",
        "digitalocean",
        "rfc2136",
        "webhook",
    ];
    let mut given = PROVIDERS.into_iter().filter(|name| is_given(dns, name));
    let Some(first) = given.next() else {
        faults.required(at.clone(), "no DNS01 provider configured");
        return;
    };
    for other in given {
        faults.forbidden(at.key(other), "may not specify more than one provider type");
    }
    if first != "cloudflare" {
        return;
    }
    let cloudflare = &dns["cloudflare"];
    let at = at.key("cloudflare");
    match (is_given(cloudflare, "apiKeySecretRef"), is_given(cloudflare, "apiTokenSecretRef")) {
        (true, true) => {
            faults.forbidden(at, "apiKeySecretRef and apiTokenSecretRef cannot both be specified")
        }
        (false, false) => faults.required(at, "apiKeySecretRef or apiTokenSecretRef is required"),
        (true, false) if text(cloudflare, "email").is_empty() => faults.required(at.key("email"), ""),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FieldRefusal, of_certificate, of_issuer};

    fn messages(faults: Vec<FieldRefusal>) -> Vec<String> {
        faults.into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn certificates_need_a_name_and_time_to_be_renewed() {
        let of = |spec| messages(of_certificate(&spec));
        let good = json!({"secretName": "web", "issuerRef": {"name": "ca"}, "dnsNames": ["web.example.com"]});
        assert!(of(good.clone()).is_empty());
        let with = |key: &str, value: serde_json::Value| {
            let mut spec = good.clone();
            spec[key] = value;
            of(spec)
        };
        assert_eq!(
            with("commonName", json!("x".repeat(65))),
            ["spec.commonName: Too long: may not be more than 64 bytes"]
        );
        assert_eq!(with("commonName", json!("${NAME}".repeat(10))), [""; 0]);
        assert_eq!(with("dnsNames", json!([])).len(), 1);
        assert_eq!(
            with("renewBefore", json!("2160h")),
            [
                "spec.renewBefore: Invalid value: 7776000000000000: certificate duration 2160h0m0s must be greater than renewBefore 2160h0m0s"
            ]
        );
        assert_eq!(with("duration", json!("30m")).len(), 1);
        assert_eq!(
            with("issuerRef", json!({"name": "ca", "kind": "AWSPCAIssuer"})),
            [
                "spec.issuerRef.kind: Invalid value: \"AWSPCAIssuer\": must be one of Issuer or ClusterIssuer (did you forget to set spec.issuerRef.kind.group?)"
            ]
        );
        assert_eq!(
            with("privateKey", json!({"algorithm": "ECDSA", "size": 2048})),
            ["spec.privateKey.size: Unsupported value: 2048: supported values: \"256\", \"384\", \"521\""]
        );
    }

    #[test]
    fn issuers_are_of_one_type_and_solvers_too() {
        let of = |spec| messages(of_issuer(&spec));
        let acme = |solver| json!({"acme": {"server": "https://acme.example.com", "privateKeySecretRef": {"name": "key"}, "solvers": [solver]}});
        assert_eq!(of(json!({})), ["spec: Required value: at least one issuer must be configured"]);
        assert_eq!(
            of(json!({"ca": {"secretName": "ca"}, "selfSigned": {}})),
            ["spec.selfSigned: Forbidden: may not specify more than one issuer type"]
        );
        assert!(of(acme(json!({"http01": {"ingress": {"class": "nginx"}}}))).is_empty());
        assert_eq!(of(acme(json!({}))), ["spec.acme.solvers[0]: Required value: no solver type configured"]);
        assert_eq!(
            of(acme(json!({"dns01": {"cloudflare": {}}}))),
            [
                "spec.acme.solvers[0].dns01.cloudflare: Required value: apiKeySecretRef or apiTokenSecretRef is required"
            ]
        );
        assert_eq!(
            of(acme(json!({"http01": {"ingress": {"class": "a", "ingressClassName": "a"}}}))),
            [
                "spec.acme.solvers[0].http01.ingress: Forbidden: only one of 'ingressClassName', 'name' or 'class' should be specified"
            ]
        );
    }
}
