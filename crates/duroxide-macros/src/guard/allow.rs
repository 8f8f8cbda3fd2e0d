//! `#[duroxide(allow_nondeterminism = "reason")]` on a statement or an expression.

use syn::{Attribute, Error, Expr, LitStr, Result};

/// Removes the attribute. Returns whether it was there.
pub(super) fn take(attrs: &mut Vec<Attribute>) -> Result<bool> {
    let Some(position) = attrs.iter().position(|attr| attr.path().is_ident("duroxide")) else {
        return Ok(false);
    };
    let attr = attrs.remove(position);
    let mut reason: Option<LitStr> = None;
    attr.parse_nested_meta(|meta| {
        if !meta.path.is_ident("allow_nondeterminism") {
            return Err(meta.error("expected `allow_nondeterminism = \"reason\"`"));
        }
        reason = Some(meta.value()?.parse()?);
        Ok(())
    })?;
    match reason {
        Some(reason) if !reason.value().trim().is_empty() => Ok(true),
        _ => Err(Error::new_spanned(attr, "say why: `allow_nondeterminism = \"reason\"`")),
    }
}

/// The attributes of an expression.
pub(super) fn attrs_of(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    macro_rules! attrs {
        ($($kind:ident),*) => {
            match expr {
                $(Expr::$kind(expr) => Some(&mut expr.attrs),)*
                _ => None,
            }
        };
    }
    attrs!(
        Array, Assign, Async, Await, Binary, Block, Break, Call, Cast, Closure, Field, ForLoop, If, Index,
        Let, Loop, Macro, Match, MethodCall, Paren, Path, Range, Reference, Return, Struct, Try, Tuple,
        Unary, While
    )
}
