//! Types and kinds.

use super::equal::deep_equal;
use super::{add, text};
use crate::{Functions, Type};

const ANY: &[Type] = &[Type::Any];
const NAMED: &[Type] = &[Type::String, Type::Any];

pub(super) fn register(f: &mut Functions) {
    add(f, &["typeOf"], ANY, |_, args| Ok(args[0].type_name().as_ref().into()));
    add(f, &["typeIs"], NAMED, |_, args| Ok((args[1].type_name() == text(args, 0)).into()));
    add(f, &["typeIsLike"], NAMED, |_, args| {
        let (wanted, name) = (text(args, 0), args[1].type_name());
        Ok((name == wanted || name.strip_prefix('*') == Some(wanted)).into())
    });
    // Sprig asks fmt for the type, which is "<nil>" for nil, and reflect for the kind, which is "invalid".
    add(f, &["kindOf"], ANY, |_, args| Ok(args[0].kind_name().into()));
    add(f, &["kindIs"], NAMED, |_, args| Ok((args[1].kind_name() == text(args, 0)).into()));
    add(f, &["deepEqual"], &[Type::Any, Type::Any], |_, args| Ok(deep_equal(&args[0], &args[1]).into()));
}
