//! Passwords, random identifiers and AES.

use super::super::{add, fail, int, text};
use super::random_bytes;
use crate::{CallError, Context, Functions, Type, Value};
use aes::cipher::block_padding::{NoPadding, Pkcs7};
use aes::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use tiphys_gocompat::{base64, rawstr};

const SS: &[Type] = &[Type::String, Type::String];
/// bcrypt's default cost.
const COST: u32 = 10;
/// The lowest that bcrypt has, for hashes that no password is held against.
const MOCK_COST: u32 = 4;
const BLOCK: usize = 16;
/// Milliseconds that a derived password takes, about.
const SCRYPT: u64 = 150;

pub(super) fn register(f: &mut Functions) {
    add(f, &["bcrypt"], &[Type::String], |ctx, args| Ok(bcrypt_hash(ctx, text(args, 0))?.into()));
    add(f, &["htpasswd"], SS, |ctx, args| {
        let user = text(args, 0);
        if user.contains(':') {
            return Ok(format!("invalid username: {user}").into());
        }
        Ok(format!("{user}:{}", bcrypt_hash(ctx, text(args, 1))?).into())
    });
    add(
        f,
        &["derivePassword"],
        &[Type::Uint32, Type::String, Type::String, Type::String, Type::String],
        |ctx, args| {
            ctx.work(SCRYPT)?;
            let counter = match &args[0] {
                Value::Uint64(counter) => *counter as u32,
                _ => 0,
            };
            Ok(derive(counter, text(args, 1), text(args, 2), text(args, 3), text(args, 4)).into())
        },
    );
    add(f, &["randBytes"], &[Type::Int], |ctx, args| {
        let Ok(count) = usize::try_from(int(args, 0)) else {
            return fail("runtime error: makeslice: len out of range");
        };
        ctx.check_size(count)?;
        Ok(base64::encode(&random_bytes(ctx, count)).into())
    });
    add(f, &["uuidv4"], &[], |ctx, _| Ok(uuid(ctx).into()));
    add(f, &["encryptAES"], SS, |ctx, args| Ok(encrypt(ctx, text(args, 0), text(args, 1)).into()));
    add(f, &["decryptAES"], SS, |_, args| Ok(decrypt(text(args, 0), text(args, 1))?.into()));
}

fn bcrypt_hash(ctx: &Context<'_>, password: &str) -> Result<String, CallError> {
    let password = rawstr::decode(password);
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned()
        );
    }
    let mut salt = [0; 16];
    ctx.random(&mut salt);
    let (cost, milliseconds) = if ctx.mocks_secrets() { (MOCK_COST, 1) } else { (COST, 60) };
    ctx.work(milliseconds)?;
    let hash = || match bcrypt::hash_with_salt(password.as_ref(), cost, salt) {
        Ok(parts) => parts.format_for_version(bcrypt::Version::TwoA),
        Err(error) => format!("failed to encrypt string with bcrypt: {error}"),
    };
    if !ctx.deterministic() || ctx.mocks_secrets() {
        return Ok(hash());
    }
    let key: [u8; 32] = Sha256::digest([&salt, password.as_ref()].concat()).into();
    Ok(remembered(key, hash))
}

/// Hashes of repeatable renders: bcrypt is slow on purpose, and an application is rendered often.
static KNOWN: LazyLock<Mutex<FxHashMap<[u8; 32], String>>> = LazyLock::new(Mutex::default);
/// How many of them are kept.
const KEPT: usize = 4096;

fn remembered(key: [u8; 32], hash: impl FnOnce() -> String) -> String {
    let known = || KNOWN.lock();
    if let Some(hash) = known().get(&key) {
        return hash.clone();
    }
    let hash = hash();
    let mut known = known();
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(key, hash.clone());
    hash
}

fn uuid(ctx: &Context<'_>) -> String {
    let mut bytes = [0; 16];
    ctx.random(&mut bytes);
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let hex = data_encoding::HEXLOWER.encode(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Templates of the Master Password algorithm, by type.
fn password_templates(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

fn derive(counter: u32, kind: &str, password: &str, user: &str, site: &str) -> String {
    const SCOPE: &[u8] = b"com.lyndir.masterpassword";
    let Some(templates) = password_templates(kind) else {
        return format!("cannot find password template {kind}");
    };
    let sized = |text: &str| {
        let bytes = rawstr::decode(text).into_owned();
        [(bytes.len() as u32).to_be_bytes().as_slice(), &bytes].concat()
    };
    let salt = [SCOPE, &sized(user)].concat();
    let params = scrypt::Params::new(15, 8, 2, 64).expect("constants within scrypt's bounds");
    let mut key = [0; 64];
    scrypt::scrypt(&rawstr::decode(password), &salt, &params, &mut key).expect("64 bytes are a valid length");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(&[SCOPE, &sized(site), &counter.to_be_bytes()].concat());
    let seed = mac.finalize().into_bytes();
    let template = templates[usize::from(seed[0]) % templates.len()];
    let character = |(class, random): (u8, &u8)| {
        let set = characters(class);
        char::from(set[usize::from(*random) % set.len()])
    };
    template.bytes().zip(&seed[1..]).map(character).collect()
}

/// The password as a key of 32 bytes.
fn aes_key(password: &str) -> [u8; 32] {
    let mut key = [0; 32];
    for (slot, byte) in key.iter_mut().zip(rawstr::decode(password).iter()) {
        *slot = *byte;
    }
    key
}

fn encrypt(ctx: &Context<'_>, password: &str, plain: &str) -> String {
    if plain.is_empty() {
        return String::new();
    }
    let mut iv = [0; BLOCK];
    ctx.random(&mut iv);
    let cipher = cbc::Encryptor::<aes::Aes256>::new(&aes_key(password).into(), &iv.into());
    let encrypted = cipher.encrypt_padded_vec_mut::<Pkcs7>(&rawstr::decode(plain));
    base64::encode(&[iv.as_slice(), &encrypted].concat())
}

fn decrypt(password: &str, encoded: &str) -> Result<String, CallError> {
    if encoded.is_empty() {
        return Ok(String::new());
    }
    let bytes = base64::decode(encoded).map_err(|error| CallError::new(error.to_string()))?;
    let Some((iv, body)) = bytes.split_first_chunk::<BLOCK>() else {
        let length = bytes.len();
        return fail(format!("runtime error: slice bounds out of range [:16] with capacity {length}"));
    };
    if body.len() % BLOCK != 0 {
        return fail("crypto/cipher: input not full blocks");
    }
    let cipher = cbc::Decryptor::<aes::Aes256>::new(&aes_key(password).into(), iv.into());
    let mut plain = cipher
        .decrypt_padded_vec_mut::<NoPadding>(body)
        .map_err(|_| CallError::new("input not full blocks"))?;
    let Some(padding) = plain.last().map(|byte| usize::from(*byte)) else {
        return fail("runtime error: index out of range [-1]");
    };
    let Some(length) = plain.len().checked_sub(padding) else {
        let over = plain.len() as i64 - padding as i64;
        return fail(format!("runtime error: slice bounds out of range [:{over}]"));
    };
    plain.truncate(length);
    Ok(rawstr::encode_vec(plain))
}
