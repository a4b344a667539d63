//! URLs.

use super::{add, fail, text};
use crate::{CallError, Functions, Map, Type};
use tiphys_gocompat::url::Url;

const PARTS: [&str; 8] = ["scheme", "host", "path", "query", "opaque", "fragment", "userinfo", "hostname"];

pub(super) fn register(f: &mut Functions) {
    add(f, &["urlParse"], &[Type::String], |_, args| {
        let url = match Url::parse(text(args, 0)) {
            Ok(url) => url,
            Err(error) => return fail(format!("unable to parse url: {error}")),
        };
        let values: [&str; 8] = [
            &url.scheme,
            &url.host,
            &url.path,
            &url.query,
            &url.opaque,
            &url.fragment,
            &url.userinfo_text(),
            url.hostname(),
        ];
        Ok(PARTS.into_iter().zip(values).collect::<Map>().into())
    });
    add(f, &["urlJoin"], &[Type::Map], |_, args| {
        let empty = Map::new();
        let parts = args[0].as_map().unwrap_or(&empty);
        let mut url = Url {
            scheme: part(parts, "scheme")?,
            host: part(parts, "host")?,
            path: part(parts, "path")?,
            query: part(parts, "query")?,
            opaque: part(parts, "opaque")?,
            fragment: part(parts, "fragment")?,
            userinfo: None,
        };
        let userinfo = part(parts, "userinfo")?;
        if !userinfo.is_empty() {
            match Url::parse(&format!("proto://{userinfo}@host")) {
                Ok(parsed) => url.userinfo = parsed.userinfo,
                Err(error) => return fail(format!("unable to parse userinfo in dict: {error}")),
            }
        }
        Ok(url.to_string().into())
    });
}

fn part(parts: &Map, key: &str) -> Result<String, CallError> {
    match parts.get(key) {
        None => Ok(String::new()),
        Some(value) => match value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None if value.is_nil() => {
                fail("runtime error: invalid memory address or nil pointer dereference")
            }
            None => {
                let kind = value.kind_name();
                fail(format!("unable to parse {key} key, must be of type string, but {kind} found"))
            }
        },
    }
}
