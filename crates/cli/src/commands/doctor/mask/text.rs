//! Credentials in texts: lines of logs, messages, files in ConfigMaps.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

use super::{MASKED, names};

/// How a name ends that stands for a credential. What matches is looked at again by [`names`].
const NAME: &str = r#"[A-Za-z0-9_.\-]*?(?:pass(?:word|wd|phrase|code)?|pwd|pw|token|secret|key|keydata|key-data|credential|cookie|auth|signature)s?"#;

/// Something that is masked, and what stays of it.
struct Rule {
    pattern: Regex,
    replace: Replacement,
}

/// What stands in the place of a match.
type Replacement = fn(&Captures<'_>) -> String;

/// The rules, in the order in which they are tried. Each leaves what the ones before it have masked.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules: [(String, Replacement); 17] = [
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)".into(), whole),
        // The same in base64; what follows may be anything.
        (r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]{12,}".into(), encoded_key),
        (r#"([A-Za-z][A-Za-z0-9+.\-]*://[^\s:/@"'`<>\\]*):([^\s"'`<>\\]+)@"#.into(), login),
        // A login before a host without a scheme, as of a registry: user:password@host/image.
        (r#"(\b[A-Za-z0-9._\-]+:)[^\s:/@"'`<>\\]{4,}(@[A-Za-z0-9.\-]+(?::\d+)?/)"#.into(), between),
        (r#"(?i)(authorization["']?\s{0,2}[:=]\s{0,2}\\?["']?(?:(?:basic|bearer|token|digest|negotiate)\s+)?)[^\s"',;\\][^\s"',\\]*"#.into(), after),
        (r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=\-]{16,}".into(), after),
        (r"\beyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{6,}(?:\.[A-Za-z0-9_\-]*)?".into(), whole),
        (KNOWN_TOKENS.concat(), whole),
        (r"(?i)([?&](?:sig|code|key|x-amz-signature|x-amz-credential|x-goog-signature)=)[^&\s\x22']+".into(), after),
        (r"\$(?:2[abxy]|apr1|argon2[a-z]{0,2}|5|6|y)\$[./A-Za-z0-9$,=+]{20,}|\{S?SHA\}[A-Za-z0-9+/=]{20,}".into(), whole),
        // Quoted values: "password": "x", password="x", also where the quotes are escaped.
        (format!(r#"(?i)(?P<quote>\\?["'])?\b(?P<name>{NAME})(?:\\?["'])?(?P<between>\s?=\s?|:\s?)(?P<value>\\"[^"\\]*\\"|"(?:[^"\\]|\\.)*"|'[^']*')"#), masked_pair),
        // password=x, --password=x, ?token=x
        (format!(r#"(?i)\b(?P<name>{NAME})(?P<between>=)(?P<value>[^\s,;&"'(){{}}\[\]\\<>]+)"#), masked_pair),
        // {user: x, token: y}
        (format!(r#"(?i)(?P<quote>[{{,]\s*)(?P<name>{NAME})(?P<between>:\s+)(?P<value>[^\s"',{{}}\[\]]+)"#), masked_pair),
        // token "x" is refused
        (r#"(?i)(\b(?:pass(?:word|wd|phrase)|token|api[ _\-]?key)\s\\?["'])([^\s"'\\]{6,})"#.into(), quoted),
        // A line of YAML, of properties or of a header: the value is the rest.
        (format!(r#"(?im)^(?P<quote>[ \t]*(?:-[ \t]+)?["']?)(?P<name>{NAME})(?P<between>["']?(?::[ \t]+|[ \t]*=[ \t]*)(?:[|>][+\-0-9]*[ \t]*\r?\n[ \t]+)?)(?P<value>[^\s"'|>&*{{\[][^\r\n]*)$"#), masked_pair),
        (format!(r"(?i)(?P<quote><)(?P<name>{NAME})(?P<between>>)(?P<value>[^<]+)"), masked_pair),
        // Flags of programs.
        (format!(r#"(?i)(?P<quote>\s--?)(?P<name>{NAME})(?P<between>\s+)(?P<value>[^\s\-"'][^\s"']*)|(?P<program>\bmysql[a-z]*\b[^\n]*?\s-p|\bredis-cli\b[^\n]*?\s-a\s+|\bcurl\b[^\n]*?\s(?:-u\s*|--user[ =])[^\s:]+:)[^\s"']+"#), flag),
    ];
    let compiled = rules.into_iter().filter_map(|(pattern, replace)| {
        let pattern = Regex::new(&pattern);
        debug_assert!(pattern.is_ok(), "{pattern:?}");
        Some(Rule { pattern: pattern.ok()?, replace })
    });
    compiled.collect()
});

/// Tokens that are known by their form.
const KNOWN_TOKENS: [&str; 4] = [
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bgl[a-z]{2,5}-[\w\-]{16,}",
    r"|\bxox[abeoprs]-[\w\-]{10,}|\bxapp-[\w\-]{10,}|\bAIza[\w\-]{30,}|\bya29\.[\w.\-]{10,}|\b[sr]k_(?:live|test)_\w{8,}",
    r"|\bsk-[A-Za-z0-9_\-]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bdckr_pat_[\w\-]{16,}|\bhv[sbr]\.[\w\-]{16,}|\bSG\.[\w\-]{16,}\.[\w\-]{16,}",
    r"|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}|\bdop_v1_[a-f0-9]{32,}|\bhooks\.slack\.com/services/[\w/]+|\b\d{6,}:AA[\w\-]{30,}",
];

/// A text in which `***` stands for every credential.
pub(crate) fn mask_text(text: &str) -> Cow<'_, str> {
    // Most texts of a cluster are names.
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-./".contains(&byte);
    if text.len() < 4 || text.bytes().all(is_name) {
        return Cow::Borrowed(text);
    }
    let mut masked = Cow::Borrowed(text);
    for rule in RULES.iter() {
        if let Cow::Owned(changed) =
            rule.pattern.replace_all(&masked, |found: &Captures<'_>| (rule.replace)(found))
        {
            masked = Cow::Owned(changed);
        }
    }
    masked
}

fn group<'a>(found: &'a Captures<'_>, name: &str) -> &'a str {
    found.name(name).map_or("", |group| group.as_str())
}

fn whole(_: &Captures<'_>) -> String {
    MASKED.to_owned()
}

/// What comes before the credential stays.
fn after(found: &Captures<'_>) -> String {
    format!("{}{MASKED}", &found[1])
}

/// What comes before and behind the credential stays.
fn between(found: &Captures<'_>) -> String {
    format!("{}{MASKED}{}", &found[1], &found[2])
}

/// A quoted value behind a word. Names of objects are quoted, too.
fn quoted(found: &Captures<'_>) -> String {
    const SHORT: usize = 20;
    let value = &found[2];
    let is_random =
        value.len() >= SHORT && value.bytes().any(|it| it.is_ascii_digit()) && !value.contains('-');
    match is_object_name(value) && !is_random {
        true => found[0].to_owned(),
        false => format!("{}{MASKED}", &found[1]),
    }
}

/// The password of an address; a port before an `@` further on is none.
fn login(found: &Captures<'_>) -> String {
    let rest = &found[2];
    let port = rest.chars().take_while(char::is_ascii_digit).count();
    let is_port = port > 0 && rest[port..].starts_with(['/', '?', '#']);
    if is_port { found[0].to_owned() } else { format!("{}:{MASKED}@", &found[1]) }
}

/// PEM in base64: certificates stay.
fn encoded_key(found: &Captures<'_>) -> String {
    use base64::Engine as _;
    let whole_groups = &found[0][..found[0].len() / 4 * 4];
    let decoded = base64::prelude::BASE64_STANDARD.decode(whole_groups).unwrap_or_default();
    let is_public = String::from_utf8_lossy(&decoded).contains("-----BEGIN CERTIFICATE");
    let has_key = String::from_utf8_lossy(&decoded).contains("PRIVATE KEY");
    if is_public && !has_key { found[0].to_owned() } else { MASKED.to_owned() }
}

/// A value with its name.
fn masked_pair(found: &Captures<'_>) -> String {
    let (name, value) = (group(found, "name"), group(found, "value"));
    let bare = value.trim_matches(['\\', '"', '\'']);
    let is_quoted_name = group(found, "quote").ends_with(['"', '\'']);
    // Controllers log `secret="shop-db"`, and say `token: "…" not found`.
    let tells_a_name =
        !is_quoted_name && matches!(name, "secret" | "secrets") && !bare.is_empty() && is_object_name(bare);
    if !names::is_credential(name)
        || names::is_no_value(bare)
        || names::is_secret_name(name, bare)
        || names::is_sentence(name, bare)
        || tells_a_name
    {
        return found[0].to_owned();
    }
    let frame: String = value.chars().take_while(|c| matches!(c, '\\' | '"' | '\'')).collect();
    let start = found.get(0).map_or(0, |all| all.start());
    let before = found.name("value").map_or(0, |value| value.start()) - start;
    format!("{}{frame}{MASKED}{frame}", &found[0][..before])
}

/// The value behind a flag.
fn flag(found: &Captures<'_>) -> String {
    match found.name("program") {
        Some(program) => format!("{}{MASKED}", program.as_str()),
        None => masked_pair(found),
    }
}

/// Whether a text could be the name of an object, with or without a namespace.
fn is_object_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_credential_is_masked() {
        for text in [
            "dial postgres://app:hunter2@db.shop:5432/app failed",
            "redis://:hunter2@cache:6379",
            "amqp://u:p/hunter2@mq:5672/v",
            "Authorization: Bearer hunter2",
            "\"authorization\": \"Basic hunter2\"",
            "Proxy-Authorization: hunter2",
            "DB_PASSWORD=hunter2",
            "started with --password=hunter2 --port=80",
            "started with --password hunter2",
            "GET /x?token=hunter2&a=b",
            "Server=db;User=sa;Password=hunter2;",
            "{\"password\": \"hunter2\"}",
            "{\\\"password\\\": \\\"hunter2\\\"}",
            "apiKey: hunter2",
            "  - client-secret: hunter2 # for the shop",
            "password: |\n  hunter2\nother: x",
            "db.password = hunter2x",
            "<Password>hunter2</Password>",
            "mysql -h db -u root -phunter2 shop",
            "curl -s -u admin:hunter2 https://x",
            "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2",
            "https://x.blob.core/y?sv=1&sig=hunter2",
            "users: [{name: u, user: {token: hunter2, password: hunter2}}]",
            "auth failed for token \"Hunter2-hunter2\"",
            "login with password 'Xhunter2!' failed",
            "pulling robot:hunter2@registry.example.com:5000/shop/web",
        ] {
            let masked = mask_text(text);
            assert!(!masked.contains("hunter2") && masked.contains("***"), "{text} -> {masked}");
        }
        let jwt =
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
        for token in [&format!("AKIA{}", "A1B2C3D4E5F6G7H8"), &format!("ghp_{}", "a1".repeat(18)), jwt] {
            assert_eq!(mask_text(&format!("got {token}.")), "got ***.", "{token}");
        }
    }

    #[test]
    fn what_a_diagnosis_needs_stays() {
        for text in [
            "MountVolume.SetUp failed for volume \"db-secret\" : secret \"db-secret\" not found",
            "dial tcp 10.96.0.1:443: i/o timeout",
            "Get \"https://10.96.0.1:443/api?timeout=32s\": context deadline exceeded",
            "postgres://db.shop.svc:5432/app is refused, mail ops@example.com",
            "http://cache:8080/a@b",
            "secrets \"db\" is forbidden: User \"system:serviceaccount:shop:web\" cannot get resource",
            "password authentication failed for user \"app\"",
            "www-authenticate: Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\"",
            "reconciling secret=\"shop-db\" namespace=\"shop\"",
            "env DB_PASSWORD=$(DB_PASSWORD)",
            "couldn't find key password in Secret shop/db",
            "failed to sync secret cache: timed out waiting for the condition",
            "level=error msg=\"key not found\" monkey=banana",
            "token \"default-token-x7k2p\" not found, password \"db-admin\" not found",
            "image registry.example.com/shop/web:1.2.3@sha256:0123456789abcdef is there",
            "{name: db, key: password}, {secret: shop-db}",
            "ScrapeConfigSecret: the secret extra-scrape could not be found in monitoring",
        ] {
            assert_eq!(mask_text(text), text);
        }
        assert_eq!(mask_text("postgres://app:x@db:5432/a"), "postgres://app:***@db:5432/a");
        assert_eq!(mask_text("a PASSWORD=x b"), "a PASSWORD=*** b");
    }

    #[test]
    fn hostile_texts_take_no_time_and_cause_no_panic() {
        for text in ["password=".repeat(20_000), "://:".repeat(20_000), "é\"password\":\"é".repeat(5_000)] {
            let _ = mask_text(&text);
        }
    }
}
