//! Which names stand for credentials: of variables, keys and flags.

/// How a name ends that stands for a credential, in small letters without separators.
const ENDINGS: [&str; 25] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "pw",
    "token",
    "secret",
    "apikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "accountkey",
    "sharedkey",
    "authkey",
    "keydata",
    "credential",
    "credentials",
    "cookie",
    "auth",
];

/// What a variable's name holds that stands for a credential.
const PARTS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authkey",
];

/// How a variable's name ends that only tells about a credential.
const ABOUT: [&str; 24] = [
    "name",
    "names",
    "path",
    "file",
    "filename",
    "dir",
    "folder",
    "host",
    "port",
    "namespace",
    "ttl",
    "expiry",
    "expiration",
    "lifetime",
    "enabled",
    "disabled",
    "type",
    "length",
    "size",
    "issuer",
    "audience",
    "provider",
    "algorithm",
    "ref",
];

/// A name in small letters, of letters and digits alone.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether the value of a field or flag of this name is a credential.
pub(super) fn is_credential(name: &str) -> bool {
    let name = plain(name);
    let singular = name.strip_suffix('s').unwrap_or(&name);
    ENDINGS.iter().any(|ending| name.ends_with(ending) || singular.ends_with(ending))
}

/// Whether the value of an environment variable, or of a parameter of a chart, is a credential.
pub(super) fn is_credential_variable(name: &str) -> bool {
    let name = plain(name);
    if ABOUT.iter().any(|ending| name.ends_with(ending)) {
        return false;
    }
    is_credential(&name)
        || PARTS.iter().any(|part| name.contains(part))
        || ["key", "salt", "dsn", "connectionstring"].iter().any(|ending| name.ends_with(ending))
}

/// Whether a value is none: empty, a switch, a reference to another value, or masked already.
pub(super) fn is_no_value(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    matches!(
        value.to_ascii_lowercase().as_str(),
        "" | "true" | "false" | "null" | "none" | "nil" | "yes" | "no" | "***"
    ) || value.starts_with('$')
        || value.starts_with("{{")
        || value.starts_with('<') && value.ends_with('>')
}

/// Words that join a sentence, and that no phrase of random words has.
const JOINING: &[&str] =
    &["the", "not", "is", "of", "to", "in", "for", "was", "has", "does", "be", "a", "an", "cannot", "failed"];

/// Whether a value is a sentence about a credential, as operators write `LoadingSecret: secret x not found`.
/// Keys and tokens have no spaces; passwords may.
pub(super) fn is_sentence(key: &str, value: &str) -> bool {
    const LONGEST_WORD: usize = 40;
    let key = plain(key);
    let key = key.strip_suffix('s').unwrap_or(&key);
    let words: Vec<&str> = value.split_whitespace().collect();
    let is_word = |word: &&str| {
        let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.len() <= LONGEST_WORD && !plain.contains(|c: char| c.is_ascii_digit() || "=+_$%&".contains(c))
    };
    (key.ends_with("secret") || key.ends_with("key"))
        && words.len() >= 4
        && words.iter().all(is_word)
        && words.iter().any(|word| JOINING.contains(word))
}

/// Whether a value is the name of a Secret, as fields like `existingSecret` have it, and no secret itself.
pub(super) fn is_secret_name(key: &str, value: &str) -> bool {
    let own = [
        "clientsecret",
        "appsecret",
        "sharedsecret",
        "webhooksecret",
        "jwtsecret",
        "cookiesecret",
        "sessionsecret",
    ];
    let key = plain(key);
    let key = key.strip_suffix('s').unwrap_or(&key);
    key.ends_with("secret")
        && !own.iter().any(|own| key.ends_with(own))
        && value.len() <= 253 + 64
        && value.contains(['-', '/'])
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_told_from_names_about_them() {
        for name in [
            "DB_PASSWORD",
            "password",
            "client-secret",
            "GITHUB_TOKEN",
            "apiKey",
            "AWS_ACCESS_KEY_ID",
            "passwords",
        ] {
            assert!(is_credential(name) && is_credential_variable(name), "{name}");
        }
        for name in ["MY_SECRET_VALUE", "TOKEN_2", "ENCRYPTION_KEY", "DATABASE_DSN", "PASSWORDS_JSON"] {
            assert!(is_credential_variable(name), "{name}");
        }
        for name in ["SECRET_NAME", "TOKEN_FILE", "PASSWORD_MIN_LENGTH", "HOST", "LOG_LEVEL"] {
            assert!(!is_credential_variable(name), "{name}");
        }
        for name in ["secretName", "tokenTTL", "image", "keys", "name"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn names_of_secrets_stay() {
        assert!(is_secret_name("existingSecret", "shop-db") && is_secret_name("auth-secret", "shop/basic"));
        assert!(!is_secret_name("clientSecret", "shop-db") && !is_secret_name("secret", "hunter2"));
        assert!(is_sentence("FailedToLoadSecret", "the Secret \"shop-db\" is not there"));
        assert!(
            !is_sentence("secret", "hunter two and three") && !is_sentence("password", "it is not the one")
        );
        assert!(!is_sentence("secret", "the a1b2c3d4 is not it"));
        assert!(is_no_value("$(DB_PASSWORD)") && is_no_value("\"\"") && !is_no_value("x"));
    }
}
