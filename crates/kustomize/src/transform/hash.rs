//! The suffix that makes the name of a generated object follow its content.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    error::{Error, Result},
    node::{Kind, Node, quoted_json, to_json},
    resource_map::ResourceMap,
};

/// Appends the hash to the name of every object that asks for it.
///
/// # Errors
/// Content without a JSON form.
pub(crate) fn add_hashes(objects: &mut ResourceMap) -> Result<()> {
    for resource in objects.list.iter_mut().filter(|resource| resource.needs_hash) {
        let hash = hash(&resource.node).map_err(Error::transform)?;
        resource.remember_id();
        let name = format!("{}-{hash}", resource.node.name());
        resource.node.set_name(&name).map_err(Error::transform)?;
        resource.touched = true;
    }
    Ok(())
}

fn hash(node: &Node) -> Result<String, String> {
    let text = match node.object_kind() {
        "ConfigMap" => {
            let mut content = json!({ "kind": "ConfigMap", "name": "", "data": part(node, "data")? });
            add_map(&mut content, node, "binaryData")?;
            quoted_json(&content)
        }
        "Secret" => {
            let mut content = json!({ "kind": "Secret", "type": part(node, "type")?, "name": "", "data": part(node, "data")? });
            add_map(&mut content, node, "stringData")?;
            quoted_json(&content)
        }
        _ => quoted_json(&to_json(node)?),
    };
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    Ok(hex.chars().map(safe_letter).collect())
}

/// Letters that make no words.
fn safe_letter(letter: char) -> char {
    match letter {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        other => other,
    }
}

/// A field as it enters the hash: text, or a map (null where it is none).
fn part(node: &Node, name: &str) -> Result<Value, String> {
    let Some(field) = node.get(name) else { return Ok(json!("")) };
    if field.kind() == Kind::Scalar {
        return Ok(json!(field.value()));
    }
    let value = to_json(field)?;
    Ok(if value.is_object() { value } else { Value::Null })
}

fn add_map(content: &mut Value, node: &Node, name: &str) -> Result<(), String> {
    let value = part(node, name)?;
    if let (Value::Object(_), Some(content)) = (&value, content.as_object_mut()) {
        content.insert(name.to_owned(), value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_content() {
        let node =
            crate::reader::parse_plain("kind: ConfigMap\nmetadata: {name: x}\ndata: {}\n").unwrap().unwrap();
        assert_eq!(hash(&node).unwrap().len(), 10);
        let other = crate::reader::parse_plain("kind: ConfigMap\nmetadata: {name: y}\ndata: {a: b}\n")
            .unwrap()
            .unwrap();
        assert_ne!(hash(&node).unwrap(), hash(&other).unwrap());
    }
}
