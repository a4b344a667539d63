//! Keys, certificates and passwords.

use std::sync::Arc;
use tiphys_gocompat::base64;
use tiphys_gotemplate::{
    Entropy, Env, FixedClock, Functions, SeededEntropy, SystemEntropy, TemplateSet, Value,
};

fn run(text: &str, entropy: &dyn Entropy) -> String {
    let mut set = TemplateSet::new(Arc::new(Functions::sprig()));
    set.parse("t", text).expect("the test's template parses");
    let clock = FixedClock("2026-01-02T03:04:05Z".parse().expect("a time"));
    let env = Env { clock: &clock, entropy, ..Env::system() };
    Arc::new(set).execute("t", Value::Nil, &env, None).unwrap_or_else(|error| error.to_string())
}

#[test]
fn seeded_results_repeat_and_differ_by_site() {
    let text = "{{ randAlphaNum 12 }} {{ randAlphaNum 12 }} {{ range 2 }}{{ uuidv4 }} {{ end }}{{ now }}";
    let first = run(text, &SeededEntropy::new(["app", "chart"]));
    assert_eq!(first, run(text, &SeededEntropy::new(["app", "chart"])));
    assert_ne!(first, run(text, &SeededEntropy::new(["app", "other"])));
    let words: Vec<&str> = first.split(' ').collect();
    assert_ne!(words[0], words[1]);
    assert_ne!(words[2], words[3]);
    assert!(first.ends_with("2026-01-02 03:04:05 +0000 UTC"));
}

#[test]
fn certificates_are_issued_and_repeat() {
    let text = "{{ $ca := genCA \"my ca\" 365 }}\
                {{ $c := genSignedCert \"my.name\" (list \"10.0.0.1\") (list \"a.b\") 10 $ca }}\
                {{ $ca.Cert }}@{{ $c.Cert }}@{{ $c.Key }}@{{ (buildCustomCert (b64enc $c.Cert) (b64enc $c.Key)).Cert }}";
    let mocking = SeededEntropy::new(["seed"]).mocking_secrets(true);
    for entropy in [&SystemEntropy as &dyn Entropy, &SeededEntropy::new(["seed"]), &mocking] {
        let output = run(text, entropy);
        let parts: Vec<&str> = output.split('@').collect();
        assert_eq!(parts.len(), 4, "{output}");
        assert!(parts[1].starts_with("-----BEGIN CERTIFICATE-----\n"));
        assert!(parts[2].starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
        assert_eq!(parts[1], parts[3]);
        assert_ne!(parts[0], parts[1]);
    }
    assert_eq!(run(text, &SeededEntropy::new(["seed"])), run(text, &SeededEntropy::new(["seed"])));
}

#[test]
fn certificates_are_encoded_as_go_encodes_them() {
    let text = "{{ $ca := genCA \"my ca\" 365 }}{{ $ca.Cert }}@{{ (genSignedCert \"my.name\" (list \"10.0.0.1\") (list \"a.b\") 10 $ca).Cert }}@{{ (genSelfSignedCert \"\" nil nil 1).Cert }}@{{ (genCA \"*.b\" 1).Cert }}";
    let output = run(text, &SeededEntropy::new(["seed"]).mocking_secrets(true));
    let decode = |pem: &str| {
        let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        base64::decode(&lines).expect("PEM holds base64")
    };
    let parts: Vec<Vec<u8>> = output.split('@').map(decode).collect();
    let has = |at: usize, bytes: &[u8]| parts[at].windows(bytes.len()).any(|window| window == bytes);
    const KEY_IDENTIFIER: &[u8] = b"\x55\x1D\x0E";
    const COMMON_NAME: &[u8] = b"\x55\x04\x03";
    assert!(has(0, b"\x13\x05my ca") && has(0, KEY_IDENTIFIER), "a printable string, and an authority's key");
    assert!(has(1, b"\x13\x07my.name") && !has(1, KEY_IDENTIFIER));
    assert!(has(1, b"\x82\x03a.b\x87\x04\x0A\x00\x00\x01"), "names come before addresses");
    assert!(!has(2, COMMON_NAME), "no subject without a name");
    assert!(has(3, b"\x0C\x03*.b"), "an asterisk is none of a printable string");
}

#[test]
fn mock_secrets_have_the_form_and_take_no_search() {
    let mocking = |seed| SeededEntropy::new([seed]).mocking_secrets(true);
    let keys = "{{ genPrivateKey \"rsa\" }}@{{ (genCA \"ca\" 1).Key }}@{{ (genSelfSignedCert \"a\" nil nil 1).Key }}";
    let made = run(keys, &mocking("a"));
    let all: Vec<&str> = made.split('@').collect();
    assert!(all[0].starts_with("-----BEGIN RSA PRIVATE KEY-----\n"), "{made}");
    assert!(all.len() == 3 && all.iter().all(|key| *key == all[0]), "{made}");
    assert_eq!(made, run(keys, &mocking("b")));
    assert_ne!(run(keys, &SeededEntropy::new(["a"])), run(keys, &SeededEntropy::new(["b"])));
    let hash = run("{{ htpasswd \"user\" \"password\" }}", &mocking("a"));
    assert!(hash.starts_with("user:$2a$04$") && hash.len() == 65, "{hash}");
}

#[test]
fn ciphers_and_hashes() {
    assert_eq!(run("{{ encryptAES \"key\" \"plain é\" | decryptAES \"key\" }}", &SystemEntropy), "plain é");
    let hash = run("{{ htpasswd \"user\" \"password\" }}", &SystemEntropy);
    assert!(hash.starts_with("user:$2a$10$") && hash.len() == 65);
    assert_eq!(run("{{ htpasswd \"a:b\" \"x\" }}", &SystemEntropy), "invalid username: a:b");
    for (kind, label) in [("ecdsa", "EC PRIVATE KEY"), ("ed25519", "PRIVATE KEY")] {
        let text = format!("{{{{ (genCAWithKey \"ca\" 1 (genPrivateKey \"{kind}\")).Key }}}}");
        assert!(run(&text, &SystemEntropy).starts_with(&format!("-----BEGIN {label}-----")));
    }
}
