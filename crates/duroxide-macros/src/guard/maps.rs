//! Local `HashMap`s and `HashSet`s: their order differs between processes.

use std::collections::BTreeSet;

use syn::{Expr, FnArg, GenericArgument, Local, Pat, Path, Signature, Type};

/// The methods that iterate over a map in its order.
pub(super) const ITERATIONS: &[&str] = &[
    "iter",
    "iter_mut",
    "keys",
    "values",
    "values_mut",
    "into_iter",
    "into_keys",
    "into_values",
    "drain",
    "retain",
];

/// The names of variables that are known to be hash maps.
#[derive(Default)]
pub(super) struct Maps(BTreeSet<String>);

impl Maps {
    pub(super) fn of_arguments(sig: &Signature) -> Self {
        let mut maps = Self::default();
        for input in &sig.inputs {
            if let FnArg::Typed(typed) = input
                && is_map_type(&typed.ty)
            {
                maps.0.extend(name_of(&typed.pat));
            }
        }
        maps
    }

    /// A `let`: its name is a map from here on, or no longer is one.
    pub(super) fn bind(&mut self, local: &Local) {
        let (pat, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pat => (pat, None),
        };
        let Some(name) = name_of(pat) else { return };
        let is_map = match (ty, &local.init) {
            (Some(ty), _) if !matches!(ty, Type::Infer(_)) => is_map_type(ty),
            (_, Some(init)) => self.is_map(&init.expr),
            (_, None) => false,
        };
        if is_map {
            self.0.insert(name);
        } else {
            self.0.remove(&name);
        }
    }

    pub(super) fn is_map(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(path) => {
                path.path.get_ident().is_some_and(|ident| self.0.contains(&ident.to_string()))
            }
            Expr::Reference(reference) => self.is_map(&reference.expr),
            Expr::Paren(paren) => self.is_map(&paren.expr),
            Expr::Group(group) => self.is_map(&group.expr),
            Expr::Call(call) => matches!(&*call.func, Expr::Path(path) if is_map_path(&path.path)),
            Expr::MethodCall(call) if call.method == "get_kv_all_values" => true,
            Expr::MethodCall(call) if call.method == "clone" => self.is_map(&call.receiver),
            Expr::MethodCall(call) if call.method == "collect" => {
                let arguments = call.turbofish.iter().flat_map(|turbofish| &turbofish.args);
                arguments
                    .into_iter()
                    .any(|argument| matches!(argument, GenericArgument::Type(ty) if is_map_type(ty)))
            }
            _ => false,
        }
    }
}

fn name_of(pat: &Pat) -> Option<String> {
    if let Pat::Ident(pat) = pat { Some(pat.ident.to_string()) } else { None }
}

fn is_map_type(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => is_map_path(&path.path),
        Type::Reference(reference) => is_map_type(&reference.elem),
        Type::Group(group) => is_map_type(&group.elem),
        _ => false,
    }
}

/// `HashMap`, `HashMap::new`, `std::collections::HashSet::<u8>::from`.
fn is_map_path(path: &Path) -> bool {
    path.segments.iter().any(|segment| segment.ident == "HashMap" || segment.ident == "HashSet")
}
