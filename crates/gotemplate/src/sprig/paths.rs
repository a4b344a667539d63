//! Paths, with slashes on every system.

use super::{add, text};
use crate::{Functions, Type};
use tiphys_gocompat::path;

const S: &[Type] = &[Type::String];

pub(super) fn register(f: &mut Functions) {
    add(f, &["base", "osBase"], S, |_, args| Ok(path::base(text(args, 0)).into()));
    add(f, &["dir", "osDir"], S, |_, args| Ok(path::dir(text(args, 0)).into()));
    add(f, &["clean", "osClean"], S, |_, args| Ok(path::clean(text(args, 0)).into()));
    add(f, &["ext", "osExt"], S, |_, args| Ok(path::ext(text(args, 0)).into()));
    add(f, &["isAbs", "osIsAbs"], S, |_, args| Ok(text(args, 0).starts_with('/').into()));
    // The environment is closed to templates; so is the network.
    add(f, &["env", "expandenv", "getHostByName"], S, |_, _| Ok("".into()));
}
