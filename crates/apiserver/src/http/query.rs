//! Query parameters.

use std::collections::BTreeMap;

use tiphys_schema::{FieldError, Path, quote};

use crate::{
    ApiError, ApiResult,
    ops::{DeleteOptions, ListOptions, Propagation},
};

/// The parameters of a URL; the first of each name counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let mut map = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            map.entry(decode(key)).or_insert_with(|| decode(value));
        }
        Self(map)
    }

    pub(super) fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// Everything but `false` and `0` says yes.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !matches!(value.to_lowercase().as_str(), "false" | "0"))
    }

    /// Refuses what a list cannot be asked.
    pub(super) fn check_list(&self) -> ApiResult<()> {
        self.whole_number("limit")?;
        self.whole_number("timeoutSeconds")?;
        if self.get("sendInitialEvents").is_empty() {
            return Ok(());
        }
        let fault =
            FieldError::forbidden(&Path::new("sendInitialEvents"), "sendInitialEvents is forbidden for list");
        Err(ApiError::invalid_options("ListOptions", fault))
    }

    /// A number that is given and can be read.
    fn whole_number(&self, key: &str) -> ApiResult<Option<i64>> {
        let text = self.get(key);
        match text.parse() {
            _ if text.is_empty() => Ok(None),
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                let why = format!("strconv.ParseInt: parsing {}: invalid syntax", quote(text));
                Err(ApiError::bad_request(why))
            }
        }
    }

    pub(super) fn list_options(&self) -> ListOptions {
        ListOptions {
            label_selector: self.get("labelSelector").to_owned(),
            field_selector: self.get("fieldSelector").to_owned(),
            limit: self.get("limit").parse().unwrap_or(0),
            continue_token: self.get("continue").to_owned(),
            resource_version: self.get("resourceVersion").to_owned(),
            resource_version_match: self.get("resourceVersionMatch").to_owned(),
        }
    }

    /// Adds to the options of a body those of the URL, which count only where the body is silent.
    pub(super) fn add_delete_options(&self, options: &mut DeleteOptions) -> ApiResult<()> {
        if options.propagation.is_none() && !self.get("propagationPolicy").is_empty() {
            options.propagation = Some(Propagation::parse(self.get("propagationPolicy"))?);
        }
        if options.propagation.is_none() && !self.get("orphanDependents").is_empty() {
            let orphans = self.flag("orphanDependents");
            options.propagation = Some(if orphans { Propagation::Orphan } else { Propagation::Background });
        }
        let seconds = self.whole_number("gracePeriodSeconds")?;
        options.grace_period_seconds = options.grace_period_seconds.or(seconds);
        Ok(())
    }
}

/// Percent-decoding with `+` as a space.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16));
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
                continue;
            }
            (b'+', _, _) => out.push(b' '),
            _ => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}
