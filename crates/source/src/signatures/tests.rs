use std::{collections::BTreeMap, path::Path};

use gix::{ObjectId, Repository, bstr::ByteSlice as _, object::Kind, objs::Write as _};
use pgp::{
    composed::{ArmorOptions, Deserializable as _, DetachedSignature, SignedPublicKey},
    packet::Signature,
    types::Timestamp,
};
use tiphys_model::SignatureExtent;

use super::{Keyring, Signed, Verdict, signatures};

/// What Git made with GnuPG's keys: commits without files, the first one first, and two tags.
const OBJECTS: &str = include_str!("testdata/objects.txt");
const ADA: &str = include_str!("testdata/ada.asc");
/// Its key was over in 2020.
const EVE: &str = include_str!("testdata/eve.asc");
/// Its key was revoked.
const DAN: &str = include_str!("testdata/dan.asc");

const PRIMARY: &str = "B641E4E920CB6A9A";
const SUBKEY: &str = "518416B36010A32F";

/// A repository with these objects, and their ids by their titles.
fn repository(folder: &Path) -> (Repository, BTreeMap<String, ObjectId>) {
    let repository = gix::init_bare(folder).expect("a repository");
    let mut ids = BTreeMap::new();
    for part in OBJECTS.split("== ").skip(1) {
        let (head, text) = part.split_once('\n').expect("a head");
        let (kind, id) = head.split_once(' ').expect("kind and id");
        let kind = if kind == "tag" { Kind::Tag } else { Kind::Commit };
        let written = repository.objects.write_buf(kind, text.as_bytes()).expect("written");
        assert_eq!(written.to_string(), id, "the object is as Git wrote it");
        let title = text.split_once("\n\n").expect("a message").1.lines().next().expect("a title");
        ids.insert(title.to_owned(), written);
    }
    (repository, ids)
}

fn keyring() -> Keyring {
    let (keyring, faults) = Keyring::read([ADA, EVE, DAN]);
    assert_eq!(faults, Vec::<String>::new());
    keyring
}

fn signatures_of(title: &str, extent: SignatureExtent, keyring: &Keyring) -> Vec<Signed> {
    let folder = tempfile::tempdir().expect("a folder");
    let (repository, ids) = repository(folder.path());
    signatures(&repository, (title, ids[title]), extent, keyring).expect("read")
}

fn verdict(title: &str) -> (Verdict, String) {
    let all = signatures_of(title, SignatureExtent::Head, &keyring());
    assert_eq!(all.len(), 1);
    (all[0].verdict, all[0].key_id.clone())
}

#[test]
fn a_signature_is_worth_what_git_and_gnupg_say() {
    let expected = [
        ("unsigned", Verdict::Unsigned, ""),
        ("signed", Verdict::Good, PRIMARY),
        ("signed with a subkey", Verdict::Good, SUBKEY),
        ("signed with a subkey that was revoked since", Verdict::RevokedKey, "85E5CF52B2648957"),
        ("signed with a key that nobody knows", Verdict::MissingKey, "8AD2F0A6E377ADB5"),
        ("signed with a key that is over", Verdict::ExpiredKey, "97162DBA8629FBBB"),
        ("signed with a key that was revoked since", Verdict::RevokedKey, "C6422DEC30A1DB25"),
        ("signed with SSH", Verdict::Foreign, ""),
        ("changed", Verdict::Bad, PRIMARY),
        ("first", Verdict::Good, SUBKEY),
        ("not signed", Verdict::Unsigned, ""),
    ];
    for (title, wanted, key) in expected {
        assert_eq!(verdict(title), (wanted, key.to_owned()), "{title}");
    }
}

/// A signature of which the octets that repeat the beginning of the digest are wrong.
fn with_wrong_start(signature: &Signature) -> Signature {
    let (config, bytes) = (signature.config().expect("known"), signature.signature().expect("known"));
    Signature::from_config(config.clone(), [0, 0], bytes.clone()).expect("a signature")
}

#[test]
fn octets_that_gnupg_overlooks_are_overlooked() {
    let folder = tempfile::tempdir().expect("a folder");
    let (repository, ids) = repository(folder.path());
    let commit = repository.find_commit(ids["signed"]).expect("a commit");
    let (armored, data) = commit.signature().expect("read").expect("signed");
    let (detached, _) = DetachedSignature::from_armor_single(armored.as_bytes()).expect("a signature");
    let wrong = DetachedSignature::new(with_wrong_start(&detached.signature));
    let wrong = wrong.to_armored_bytes(ArmorOptions::default()).expect("armored");
    let mut data = data.to_bstring();
    let now = Timestamp::now();

    let (mut key, _) = SignedPublicKey::from_armor_single(ADA.as_bytes()).expect("a key");
    let certification = &mut key.details.users[0].signatures[0];
    *certification = with_wrong_start(certification);
    let text = key.to_armored_string(ArmorOptions::default()).expect("armored");
    for keyring in [keyring(), Keyring::read([text.as_str()]).0] {
        assert_eq!(keyring.judge(&wrong, &data, now), (Verdict::Good, PRIMARY.to_owned()));
    }
    data.push(b'.');
    assert_eq!(keyring().judge(&wrong, &data, now).0, Verdict::Bad);
}

/// Texts with one octet each that is another one.
fn with_slips(text: &str) -> impl Iterator<Item = Vec<u8>> {
    let octets = [b'/', 0xff];
    (0..text.len()).flat_map(move |at| {
        octets.map(|octet| {
            let mut changed = text.as_bytes().to_vec();
            changed[at] = octet;
            changed
        })
    })
}

#[test]
fn no_text_of_a_key_or_signature_ends_the_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let (repository, ids) = repository(folder.path());
    let commit = repository.find_commit(ids["signed"]).expect("a commit");
    let (armored, data) = commit.signature().expect("read").expect("signed");
    let (keyring, now) = (keyring(), Timestamp::now());
    for changed in with_slips(&armored.to_str_lossy()) {
        keyring.judge(&changed, &data.to_bstring(), now);
    }
    for changed in with_slips(EVE) {
        let text = String::from_utf8_lossy(&changed);
        Keyring::read([text.as_ref()]).0.judge(&armored, b"", now);
    }
}

#[test]
fn who_made_it_is_told() {
    let all = signatures_of("signed", SignatureExtent::Head, &keyring());
    assert_eq!(all[0].author, "Ada <ada@example.com>");
    let tag = signatures_of("first", SignatureExtent::Head, &keyring());
    assert_eq!((tag[0].revision.as_str(), tag[0].author.as_str()), ("first", "Ada <ada@example.com>"));
}

#[test]
fn a_history_goes_back_to_its_seal() {
    let titles =
        |title: &str, keyring: &Keyring| signatures_of(title, SignatureExtent::History, keyring).len();
    assert_eq!(titles("after the seal", &keyring()), 2, "the commit and its seal");
    assert_eq!(titles("all before was looked at", &keyring()), 1);
    assert_eq!(titles("signed with a key that nobody knows", &keyring()), 3);
    assert_eq!(titles("first", &keyring()), 3, "the tag, too");
    assert_eq!(titles("signed with a subkey", &keyring()), 3, "there is no seal before it");
    // Whoever is not known seals nothing.
    assert_eq!(titles("after the seal", &Keyring::default()), 6);
}

#[test]
fn keys_that_cannot_be_read_are_told() {
    let (_, faults) = Keyring::read(["-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!\n", "nothing"]);
    assert_eq!(faults.len(), 2, "{faults:?}");
}
