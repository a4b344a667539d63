//! Certificates.

use super::super::{add, fail, int, text};
use super::{der, keys, random_bytes};
use crate::{CallError, CallResult, Context, Functions, Object, Type, Value, format};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
    string::PrintableString,
};
use std::borrow::Cow;
use time::OffsetDateTime;
use tiphys_gocompat::base64;

const CERTIFICATE: &str = "sprig.certificate";

/// A certificate with its key, both PEM.
struct Certificate {
    cert: String,
    key: String,
}

impl Object for Certificate {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(CERTIFICATE)
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(self.cert.as_str().into()),
            "Key" => Some(self.key.as_str().into()),
            _ => None,
        }
    }

    fn field_names(&self) -> &[&'static str] {
        &["Cert", "Key"]
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.cert == other.cert && self.key == other.key)
    }
}

pub(super) fn register(f: &mut Functions) {
    const S: Type = Type::String;
    const I: Type = Type::Int;
    const L: Type = Type::List;
    const CA: Type = Type::Named(CERTIFICATE);
    add(f, &["buildCustomCert"], &[S, S], |_, args| build_custom(text(args, 0), text(args, 1)));
    add(f, &["genCA"], &[S, I], |ctx, args| {
        authority(ctx, text(args, 0), int(args, 1), &keys::rsa(ctx, 2048)?)
    });
    add(f, &["genCAWithKey"], &[S, I, S], |ctx, args| {
        authority(ctx, text(args, 0), int(args, 1), text(args, 2))
    });
    add(f, &["genSelfSignedCert"], &[S, L, L, I], |ctx, args| self_signed(ctx, args, &keys::rsa(ctx, 2048)?));
    add(f, &["genSelfSignedCertWithKey"], &[S, L, L, I, S], |ctx, args| {
        self_signed(ctx, args, text(args, 4))
    });
    add(f, &["genSignedCert"], &[S, L, L, I, CA], |ctx, args| signed(ctx, args, &keys::rsa(ctx, 2048)?));
    add(f, &["genSignedCertWithKey"], &[S, L, L, I, CA, S], |ctx, args| signed(ctx, args, text(args, 5)));
}

fn wrapped(what: &str) -> impl Fn(rcgen::Error) -> CallError {
    move |error| CallError::new(format!("{what}: {error}"))
}

/// Reads a private key, with Sprig's words for what is wrong.
fn private_key(pem: &str) -> Result<KeyPair, String> {
    let Some((label, _)) = der::read_pem(pem) else {
        return Err("no PEM data in input".to_owned());
    };
    let Some(kind) = label.strip_suffix("PRIVATE KEY") else {
        return Err(format!("no private key data in PEM block of type {label}"));
    };
    match kind.trim_end() {
        "" | "RSA" | "EC" => {
            KeyPair::from_pem(pem).map_err(|error| format!("parsing private key from PEM: {error}"))
        }
        "DSA" => Err("x509: certificate private key does not implement crypto.Signer".to_owned()),
        kind => Err(format!("invalid private key type {kind}")),
    }
}

fn build_custom(cert: &str, key: &str) -> CallResult {
    let decode = |encoded: &str| base64::decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(cert) = decode(cert) else {
        return fail("unable to decode base64 certificate");
    };
    let Some(key) = decode(key) else {
        return fail("unable to decode base64 private key");
    };
    let Some((_, encoded)) = der::read_pem(&cert) else {
        return fail("unable to decode certificate");
    };
    if der::read(&encoded).is_none_or(|(tag, _, rest)| tag != 0x30 || !rest.is_empty()) {
        return fail("error parsing certificate: decodedCert.Bytes: x509: malformed certificate");
    }
    if let Err(error) = private_key(&key) {
        return fail(format!("error parsing private key: {error}"));
    }
    Ok(Value::object(Certificate { cert, key }))
}

/// What all of Sprig's certificates have in common.
fn params(ctx: &Context<'_>, name: &str, days: i64) -> Result<CertificateParams, CallError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if !name.is_empty() {
        params.distinguished_name.push(DnType::CommonName, common_name(name));
    }
    let now = ctx.now().as_second();
    let moment = |seconds: i64| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|_| CallError::new("error creating certificate: date out of range"))
    };
    params.not_before = moment(now)?;
    params.not_after = moment(now.saturating_add(days.saturating_mul(86_400)))?;
    let mut serial = random_bytes(ctx, 16);
    // Serial numbers are positive.
    serial[0] &= 0x7F;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

/// A name as Go encodes it: a `PrintableString` where that has all its characters.
fn common_name(name: &str) -> DnValue {
    match PrintableString::try_from(name) {
        Ok(printable) => DnValue::PrintableString(printable),
        Err(_) => DnValue::Utf8String(name.to_owned()),
    }
}

/// Says that the certificate is no authority. Go adds no identifier of its key, which `IsCa::ExplicitNoCa`
/// would.
fn leaf(params: &mut CertificateParams) {
    const BASIC_CONSTRAINTS: [u64; 4] = [2, 5, 29, 19];
    const EMPTY_SEQUENCE: [u8; 2] = [0x30, 0];
    let mut extension = CustomExtension::from_oid_content(&BASIC_CONSTRAINTS, EMPTY_SEQUENCE.to_vec());
    extension.set_criticality(true);
    params.is_ca = IsCa::NoCa;
    params.custom_extensions.push(extension);
}

/// Adds the addresses and names of the second and third argument.
fn alternatives(params: &mut CertificateParams, args: &[Value]) -> Result<(), CallError> {
    let items = |at: usize| args[at].as_list().map(crate::List::snapshot).unwrap_or_default();
    let mut addresses = Vec::new();
    for ip in items(1) {
        let Some(text) = ip.as_str() else {
            return fail(format!("error parsing ip: {} is not a string", format::sprint(&[ip])));
        };
        match text.parse() {
            Ok(address) => addresses.push(SanType::IpAddress(address)),
            Err(_) => return fail(format!("error parsing ip: {text}")),
        }
    }
    for name in items(2) {
        let Some(text) = name.as_str() else {
            let shown = format::sprint(&[name]);
            return fail(format!("error processing alternate dns name: {shown} is not a string"));
        };
        let name = text.try_into().map_err(wrapped("error creating certificate"))?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    params.subject_alt_names.append(&mut addresses);
    Ok(())
}

fn finished(cert: String, key: &str) -> CallResult {
    Ok(Value::object(Certificate { cert: cert.replace("\r\n", "\n"), key: key.to_owned() }))
}

fn authority(ctx: &Context<'_>, name: &str, days: i64, key: &str) -> CallResult {
    let pair = private_key(key).map_err(|error| CallError::new(format!("parsing private key: {error}")))?;
    let mut params = params(ctx, name, days)?;
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&pair).map_err(wrapped("error creating certificate"))?;
    finished(cert.pem(), key)
}

fn self_signed(ctx: &Context<'_>, args: &[Value], key: &str) -> CallResult {
    let pair = private_key(key).map_err(|error| CallError::new(format!("parsing private key: {error}")))?;
    let mut params = params(ctx, text(args, 0), int(args, 3))?;
    alternatives(&mut params, args)?;
    leaf(&mut params);
    let cert = params.self_signed(&pair).map_err(wrapped("error creating certificate"))?;
    finished(cert.pem(), key)
}

fn signed(ctx: &Context<'_>, args: &[Value], key: &str) -> CallResult {
    let Value::Object(object) = &args[4] else {
        return fail("unable to decode certificate");
    };
    let Some(authority) = object.downcast_ref::<Certificate>() else {
        return fail("unable to decode certificate");
    };
    let pair = private_key(key).map_err(|error| CallError::new(format!("parsing private key: {error}")))?;
    if der::read_pem(&authority.cert).is_none() {
        return fail("unable to decode certificate");
    }
    let signer = match private_key(&authority.key) {
        Ok(signer) => signer,
        Err(error) => return fail(format!("error parsing private key: {error}")),
    };
    let issuer = Issuer::from_ca_cert_pem(&authority.cert, signer)
        .map_err(wrapped("error parsing certificate: decodedSignerCert.Bytes"))?;
    let mut params = params(ctx, text(args, 0), int(args, 3))?;
    params.use_authority_key_identifier_extension = true;
    alternatives(&mut params, args)?;
    leaf(&mut params);
    let cert = params.signed_by(&pair, &issuer).map_err(wrapped("error creating certificate"))?;
    finished(cert.pem(), key)
}
