//! Whether the parts of a workflow have the form that GitHub expects.

use tiphys_yaml::{Kind, Node};

use super::{
    Walker,
    sections::{ExpressionScope, Key, Shape},
};

impl<'n> Walker<'n> {
    /// Holds a node against a shape; `scope` says what its expressions may ask for, if it is known.
    pub(super) fn shape(&mut self, node: &'n Node, shape: Shape, scope: Option<&'static ExpressionScope>) {
        if node.kind() == Kind::Alias || node.is_null() {
            return;
        }
        if matches!(shape, Shape::Any) {
            return self.check_nested(node, scope);
        }
        let text = node.as_str();
        if let Some(text) = text {
            self.expressions(node, text, scope);
            if text.contains("${{") {
                return;
            }
        }
        match shape {
            Shape::Scalar if text.is_none() => self.not_expected(node),
            Shape::Scalar => {}
            Shape::Bool
                if !text.is_some_and(|text| matches!(text.to_lowercase().as_str(), "true" | "false")) =>
            {
                self.wrong(node, "true or false is expected");
            }
            Shape::Number if text.is_none_or(|text| text.parse::<f64>().is_err()) => {
                self.wrong(node, "a number is expected");
            }
            Shape::Bool | Shape::Number => {}
            Shape::Word(words) if !text.is_some_and(|text| words.contains(&text)) => {
                self.wrong(node, &format!("expected: {}", words.join(", ")));
            }
            Shape::Word(_) => {}
            Shape::Mapping(keys) => self.mapping(node, keys, scope),
            Shape::Named(each) => self.check_named_parts(node, *each, scope),
            Shape::Identified(each) => {
                self.check_named_parts(node, *each, scope);
                for (key, _) in node.pairs().unwrap_or_default() {
                    self.identifier(key);
                }
            }
            Shape::List(each) => self.list(node, *each, scope),
            Shape::OneOrMany(each) if node.items().is_some() => self.list(node, *each, scope),
            Shape::OneOrMany(Shape::Scalar) if text.is_some() => {}
            Shape::OneOrMany(each) => self.shape(node, *each, scope),
            Shape::ScalarOr(other) if text.is_none() => self.shape(node, *other, scope),
            Shape::WordOr(words, _) if text.is_some_and(|text| !words.contains(&text)) => {
                self.wrong(node, &format!("expected: {}", words.join(", ")));
            }
            Shape::WordOr(_, other) if text.is_none() => self.shape(node, *other, scope),
            Shape::ListOr(_) if node.items().is_some() => self.check_nested(node, scope),
            Shape::ListOr(other) if text.is_none() => self.shape(node, *other, scope),
            Shape::Any | Shape::ScalarOr(_) | Shape::WordOr(..) | Shape::ListOr(_) => {}
        }
    }

    /// Expressions of a part whose form is not checked by GitHub's, however deep it is.
    fn check_nested(&mut self, node: &'n Node, scope: Option<&'static ExpressionScope>) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if let Some(text) = node.as_str() {
                self.expressions(node, text, scope);
            }
            open.extend(node.items().unwrap_or_default());
            open.extend(node.pairs().unwrap_or_default().iter().map(|(_, value)| value));
        }
    }

    fn wrong(&mut self, node: &'n Node, label: &str) {
        match node.as_str() {
            Some(text) => self.refuse(node, format!("Unexpected value '{text}'"), label),
            None => self.not_expected(node),
        }
    }

    fn not_expected(&mut self, node: &'n Node) {
        match node.kind() {
            Kind::Mapping => self.refuse(node, "A mapping was not expected", "a single value is expected"),
            _ => self.refuse(node, "A sequence was not expected", "no list is expected here"),
        }
    }

    fn mapping(&mut self, node: &'n Node, keys: &'static [Key], scope: Option<&'static ExpressionScope>) {
        let Some(pairs) = node.pairs() else { return self.wrong(node, "a mapping is expected") };
        let is_merged = node.get("<<").is_some();
        for (name, value) in pairs {
            let text = name.as_str().unwrap_or_default();
            match keys.iter().find(|key| key.name.eq_ignore_ascii_case(text)) {
                Some(key) if key.name == "if" => self.condition(value, key.scope),
                Some(key) => self.shape(value, key.shape, key.scope.or(scope)),
                // Of jobs and steps every unknown key is told elsewhere.
                None if keys.iter().any(|key| key.name == "uses") => {}
                None => self.unexpected(name, text, keys.iter().map(|key| key.name)),
            }
        }
        for key in keys.iter().filter(|key| key.is_required && !is_merged && node.get(key.name).is_none()) {
            self.refuse(node, format!("Required property is missing: {}", key.name), "it is missing here");
        }
    }

    fn check_named_parts(&mut self, node: &'n Node, each: Shape, scope: Option<&'static ExpressionScope>) {
        let Some(pairs) = node.pairs() else { return self.wrong(node, "a mapping is expected") };
        for (name, value) in pairs {
            if name.as_str() != Some("<<") {
                self.shape(value, each, scope);
            }
        }
    }

    fn list(&mut self, node: &'n Node, each: Shape, scope: Option<&'static ExpressionScope>) {
        let Some(items) = node.items() else { return self.wrong(node, "a list is expected") };
        for item in items {
            self.shape(item, each, scope);
        }
    }
}
