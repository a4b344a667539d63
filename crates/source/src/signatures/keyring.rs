//! OpenPGP keys that are believed, and what a signature is worth to who believes them (RFC 9580; the outcomes
//! are GnuPG's, doc/DETAILS, "General status codes").

use std::io::Cursor;

use pgp::{
    composed::{Deserializable, DetachedSignature, PublicOrSecret, SignedPublicKey, SignedPublicSubKey},
    packet::{Signature, SignatureType, SignatureVersion},
    ser::Serialize,
    types::{KeyDetails, KeyId, Tag, Timestamp, VerifyingKey},
};

/// OpenPGP keys that are believed as they are: who may say so put them here.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: Vec<SignedPublicKey>,
}

/// What a signature is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is right, and so is its key.
    Good,
    /// It is not of what it stands by, cannot be read, or its key may not make such.
    Bad,
    /// It is no longer valid.
    ExpiredSignature,
    /// Its key is no longer valid.
    ExpiredKey,
    /// Its key was revoked.
    RevokedKey,
    /// Its key is not in the keyring.
    MissingKey,
    /// There is none.
    Unsigned,
    /// It is not one of OpenPGP.
    Foreign,
}

impl Verdict {
    /// Argo CD's words (`util/git`, `GPGVerificationResult`).
    pub fn text(self) -> &'static str {
        match self {
            Self::Good => "signed",
            Self::Bad => "bad signature",
            Self::ExpiredSignature => "expired signature",
            Self::ExpiredKey => "signed with expired key",
            Self::RevokedKey => "signed with revoked key",
            Self::MissingKey => "signed with key not in keyring",
            Self::Unsigned => "unsigned",
            Self::Foreign => "signed otherwise than with OpenPGP, which is not verified",
        }
    }
}

impl Keyring {
    /// Reads armored public keys, several in a text too. Returned beside it is why texts could not be read.
    pub fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> (Self, Vec<String>) {
        let (mut keyring, mut faults) = (Self::default(), Vec::new());
        for text in texts {
            match PublicOrSecret::from_armor_many(Cursor::new(text.trim_start())) {
                Ok((keys, _)) => keys.for_each(|key| match key {
                    Ok(PublicOrSecret::Public(key)) => keyring.keys.push(key),
                    Ok(PublicOrSecret::Secret(_)) => faults.push("it is a secret key".to_owned()),
                    Err(error) => faults.push(error.to_string()),
                }),
                Err(error) => faults.push(error.to_string()),
            }
        }
        (keyring, faults)
    }

    /// What an armored signature of some bytes is worth, and the id of its key as far as it names one.
    pub(crate) fn judge(&self, armored: &[u8], signed: &[u8], now: Timestamp) -> (Verdict, String) {
        if !armored.starts_with(b"-----BEGIN PGP ") {
            return (Verdict::Foreign, String::new());
        }
        let Ok((DetachedSignature { signature }, _)) =
            DetachedSignature::from_armor_single(Cursor::new(armored))
        else {
            return (Verdict::Bad, String::new());
        };
        let Some(issuer) = issuer(&signature) else { return (Verdict::Bad, String::new()) };
        // Keys may share an id; one that verifies decides.
        let mut verdict = Verdict::MissingKey;
        for key in &self.keys {
            if key.primary_key.legacy_key_id() == issuer {
                verdict = of_primary(key, &signature, signed, now);
            }
            for subkey in key.public_subkeys.iter().filter(|subkey| subkey.key.legacy_key_id() == issuer) {
                verdict = of_subkey(key, subkey, &signature, signed, now);
            }
            if verdict == Verdict::Good {
                break;
            }
        }
        (verdict, issuer.as_ref().iter().map(|byte| format!("{byte:02X}")).collect())
    }
}

/// The key that a signature says made it.
fn issuer(signature: &Signature) -> Option<KeyId> {
    if let Some(id) = signature.issuer_key_id().first() {
        return Some(**id);
    }
    let fingerprint = signature.issuer_fingerprint().first()?.as_bytes();
    let id: [u8; 8] = fingerprint.get(fingerprint.len().checked_sub(8)?..)?.try_into().ok()?;
    Some(id.into())
}

fn of_primary(key: &SignedPublicKey, signature: &Signature, signed: &[u8], now: Timestamp) -> Verdict {
    let life = Life::of_primary(key);
    let may_sign = life.signs.unwrap_or(true);
    judge_signature(may_sign, is_of(signature, &key.primary_key, signed), &[life], signature, now)
}

fn of_subkey(
    key: &SignedPublicKey,
    subkey: &SignedPublicSubKey,
    signature: &Signature,
    signed: &[u8],
    now: Timestamp,
) -> Verdict {
    let Some(life) = Life::of_subkey(key, subkey) else { return Verdict::Bad };
    let may_sign = life.signs == Some(true);
    let lives = [Life::of_primary(key), life];
    judge_signature(may_sign, is_of(signature, &subkey.key, signed), &lives, signature, now)
}

/// Whether a signature is one of data, and of these.
fn is_of(signature: &Signature, key: &impl VerifyingKey, signed: &[u8]) -> bool {
    matches!(signature.typ(), Some(SignatureType::Binary | SignatureType::Text))
        && (signature.verify(key, signed).is_ok() || is_of_but_for_its_start(signature, key, signed))
        && signature.created().is_some_and(|made| made >= key.created_at())
}

/// The same of a signature of which only the two octets are wrong that repeat the beginning of the digest.
/// GnuPG does not look at them; until 2021 GitHub wrote the first two of the commit there.
fn is_of_but_for_its_start(signature: &Signature, key: &impl VerifyingKey, signed: &[u8]) -> bool {
    let is_plain =
        signature.version() == SignatureVersion::V4 && signature.typ() == Some(SignatureType::Binary);
    let digest = || {
        let config = signature.config()?;
        let mut hasher = config.hash_alg.new_hasher().ok()?;
        config.hash_data_to_sign(&mut hasher, signed).ok()?;
        let length = config.hash_signature_data(&mut hasher).ok()?;
        hasher.update(&config.trailer(length).ok()?);
        key.verify(config.hash_alg, &hasher.finalize(), signature.signature()?).ok()
    };
    is_plain && digest().is_some()
}

fn judge_signature(
    may_sign: bool,
    is_right: bool,
    lives: &[Life],
    signature: &Signature,
    now: Timestamp,
) -> Verdict {
    let ends = signature.signature_expiration_time().zip(signature.created());
    let is_over = ends.is_some_and(|(lasts, made)| {
        lasts.as_secs() != 0 && made.as_secs().saturating_add(lasts.as_secs()) <= now.as_secs()
    });
    if !may_sign || !is_right || lives.iter().any(|life| life.unbound) {
        Verdict::Bad
    } else if lives.iter().any(|life| life.revoked) {
        Verdict::RevokedKey
    } else if lives.iter().any(|life| life.ends.is_some_and(|ends| ends <= now)) {
        Verdict::ExpiredKey
    } else if is_over {
        Verdict::ExpiredSignature
    } else {
        Verdict::Good
    }
}

/// What a key says of itself by its newest signature.
#[derive(Default)]
struct Life {
    /// No such signature stands by it.
    unbound: bool,
    /// It was revoked by itself.
    revoked: bool,
    /// When it ends, if it does.
    ends: Option<Timestamp>,
    /// Whether it may sign data; `None` if it does not say.
    signs: Option<bool>,
}

impl Life {
    /// Of what a key says of itself what verifies counts, or else all of it: whoever put the key here
    /// believes it, and the key of GitHub's web interface bears one signature, in which two octets that GnuPG
    /// overlooks are wrong.
    fn of_primary(key: &SignedPublicKey) -> Self {
        let (primary, details) = (&key.primary_key, &key.details);
        let own = primary.legacy_key_id();
        let is_own = |signature: &&Signature| issuer(signature) == Some(own);
        let of_users = details.users.iter().flat_map(|user| {
            let certifications = user.signatures.iter().filter(|signature| signature.is_certification());
            certifications.map(|it| (it, it.verify_certification(primary, Tag::UserId, &user.id).is_ok()))
        });
        let direct = details.direct_signatures.iter().map(|it| (it, it.verify_key(primary).is_ok()));
        let said: Vec<(&Signature, bool)> = direct.chain(of_users).filter(|(it, _)| is_own(it)).collect();
        let is_any_right = said.iter().any(|(_, is_right)| *is_right);
        let counting = said.iter().filter(|(_, is_right)| *is_right || !is_any_right).map(|(it, _)| *it);
        let mut life = Self::from_signatures(counting, primary.created_at());
        life.revoked = details.revocation_signatures.iter().any(|it| is_own(&it));
        life
    }

    /// `None` if it is not one of the key.
    fn of_subkey(key: &SignedPublicKey, subkey: &SignedPublicSubKey) -> Option<Self> {
        let primary = &key.primary_key;
        let of_type = |wanted| subkey.signatures.iter().filter(move |it| it.typ() == Some(wanted));
        let bound = of_type(SignatureType::SubkeyBinding)
            .filter(|signature| signature.verify_subkey_binding(primary, &subkey.key).is_ok())
            // Without it anybody could claim that a key of somebody else's is theirs.
            .filter(|signature| !signature.key_flags().sign() || is_crossed(signature, primary, &subkey.key));
        let mut life = Self::from_signatures(bound, subkey.key.created_at());
        life.revoked = of_type(SignatureType::SubkeyRevocation)
            .any(|signature| signature.verify_subkey_binding(primary, &subkey.key).is_ok());
        (!life.unbound).then_some(life)
    }

    fn from_signatures<'a>(signatures: impl Iterator<Item = &'a Signature>, born: Timestamp) -> Self {
        let Some(newest) = signatures.max_by_key(|signature| signature.created()) else {
            return Self { unbound: true, ..Self::default() };
        };
        let lasts = newest.key_expiration_time().filter(|lasts| lasts.as_secs() != 0);
        let flags = newest.key_flags();
        let says = newest.config().is_some_and(|config| {
            config.hashed_subpackets().any(|part| part.typ() == pgp::packet::SubpacketType::KeyFlags)
        });
        Self {
            ends: lasts.map(|lasts| Timestamp::from_secs(born.as_secs().saturating_add(lasts.as_secs()))),
            signs: says.then(|| flags.sign()),
            ..Self::default()
        }
    }
}

/// Whether a subkey that signs says itself whose it is.
fn is_crossed(
    binding: &Signature,
    primary: &(impl VerifyingKey + Serialize),
    subkey: &(impl VerifyingKey + Serialize),
) -> bool {
    let back = binding.embedded_signature();
    back.is_some_and(|back| back.verify_primary_key_binding(subkey, primary).is_ok())
}
