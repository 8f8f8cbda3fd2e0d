//! Refuses known sources of nondeterminism in the body of an orchestration.
//!
//! The guard reads tokens: it recognizes paths by how they are written, and sees neither types nor the code of functions
//! that the body calls. Its findings are almost certainly mistakes; it does not find all mistakes.

mod allow;
mod maps;
mod sources;
#[cfg(test)]
mod tests;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Block, Error, Expr, ExprForLoop, ExprMethodCall, ExprPath, ItemUse, Local, Macro, Path, Signature, Stmt,
    UseTree,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

use maps::Maps;

/// The hint at the end of every message: how to allow one place.
const HOW_TO_ALLOW: &str = "if it cannot change what the orchestration does: `#[duroxide(allow_nondeterminism = \"reason\")]` on the statement";

/// Checks the body of an orchestration and removes the attributes that allow something.
pub(crate) fn check(sig: &Signature, body: &mut Block) -> Vec<Error> {
    let mut guard = Guard { errors: Vec::new(), maps: Maps::of_arguments(sig), allowed: false };
    guard.visit_block_mut(body);
    guard.errors
}

struct Guard {
    errors: Vec<Error>,
    maps: Maps,
    /// Within a statement that is allowed.
    allowed: bool,
}

impl Guard {
    fn refuse(&mut self, span: Span, what: &str, instead: &str) {
        if self.allowed {
            return;
        }
        let message = format!(
            "{what} is not deterministic: a replay would not do the same\nuse {instead} instead\n{HOW_TO_ALLOW}"
        );
        self.errors.push(Error::new(span, message));
    }

    fn check_segments(&mut self, segments: &[String], span: Span) {
        if let Some(instead) = sources::replacement(segments) {
            self.refuse(span, &format!("`{}`", segments.join("::")), instead);
        }
    }

    fn check_path(&mut self, path: &Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.check_segments(&segments, path.span());
    }

    /// Visits a statement or an expression that an attribute may allow.
    fn visit_allowed(&mut self, attrs: Option<&mut Vec<syn::Attribute>>, visit: impl FnOnce(&mut Self)) {
        let allowed = match attrs.map(allow::take) {
            Some(Ok(allowed)) => allowed,
            Some(Err(error)) => {
                self.errors.push(error);
                true
            }
            None => false,
        };
        let before = self.allowed;
        self.allowed |= allowed;
        visit(self);
        self.allowed = before;
    }

    /// Searches the tokens of a macro, which may be no expressions, for paths.
    fn check_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut span = None;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end_of_path(&mut path, &mut span);
                    }
                    colons = 0;
                    span.get_or_insert(ident.span());
                    path.push(ident.to_string());
                }
                other => {
                    colons = 0;
                    self.end_of_path(&mut path, &mut span);
                    if let TokenTree::Group(group) = other {
                        self.check_tokens(group.stream());
                    }
                }
            }
        }
        self.end_of_path(&mut path, &mut span);
    }

    fn end_of_path(&mut self, path: &mut Vec<String>, span: &mut Option<Span>) {
        let segments = std::mem::take(path);
        if let Some(span) = span.take() {
            self.check_segments(&segments, span);
        }
    }

    fn check_iteration(&mut self, iterated: &Expr) {
        if self.maps.is_map(iterated) {
            let what = "the order of a `HashMap` or `HashSet`";
            self.refuse(iterated.span(), what, "a `BTreeMap`, a `BTreeSet` or a sorted `Vec`");
        }
    }
}

impl VisitMut for Guard {
    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        let attrs = match stmt {
            Stmt::Local(local) => Some(&mut local.attrs),
            Stmt::Macro(statement) => Some(&mut statement.attrs),
            // An expression has its own attributes, see below.
            Stmt::Expr(..) | Stmt::Item(_) => None,
        };
        let mut taken = attrs.map(std::mem::take);
        self.visit_allowed(taken.as_mut(), |guard| visit_mut::visit_stmt_mut(guard, stmt));
        match stmt {
            Stmt::Local(local) => local.attrs = taken.unwrap_or_default(),
            Stmt::Macro(statement) => statement.attrs = taken.unwrap_or_default(),
            Stmt::Expr(..) | Stmt::Item(_) => {}
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let mut taken = allow::attrs_of(expr).map(std::mem::take);
        self.visit_allowed(taken.as_mut(), |guard| visit_mut::visit_expr_mut(guard, expr));
        if let (Some(attrs), Some(taken)) = (allow::attrs_of(expr), taken) {
            *attrs = taken;
        }
    }

    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        self.check_path(&path.path);
        visit_mut::visit_expr_path_mut(self, path);
    }

    fn visit_macro_mut(&mut self, called: &mut Macro) {
        if let Some(instead) = unbiased_select(called) {
            self.refuse(called.path.span(), "the choice of `select!`", instead);
        } else {
            self.check_path(&called.path);
        }
        self.check_tokens(called.tokens.clone());
    }

    fn visit_item_use_mut(&mut self, item: &mut ItemUse) {
        for segments in imported(&item.tree) {
            self.check_segments(&segments, item.span());
        }
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        visit_mut::visit_local_mut(self, local);
        self.maps.bind(local);
    }

    fn visit_expr_for_loop_mut(&mut self, each: &mut ExprForLoop) {
        self.check_iteration(&each.expr);
        visit_mut::visit_expr_for_loop_mut(self, each);
    }

    fn visit_expr_method_call_mut(&mut self, call: &mut ExprMethodCall) {
        if maps::ITERATIONS.iter().any(|name| call.method == name) {
            self.check_iteration(&call.receiver);
        }
        if call.method != "step" {
            return visit_mut::visit_expr_method_call_mut(self, call);
        }
        // The work of `ctx.step(name, || …)` is not replayed, so everything is allowed in it.
        self.visit_expr_mut(&mut call.receiver);
        for argument in &mut call.args {
            let before = self.allowed;
            self.allowed |= matches!(argument, Expr::Closure(_));
            self.visit_expr_mut(argument);
            self.allowed = before;
        }
    }
}

/// A `select!` that chooses at random, with its replacement.
fn unbiased_select(called: &Macro) -> Option<&'static str> {
    let path: Vec<String> = called.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    if path.last()? != "select" {
        return None;
    }
    if path.first().is_some_and(|first| first.starts_with("futures")) {
        return Some("`ctx.select2`, or `futures::select_biased!`,");
    }
    let first = called.tokens.clone().into_iter().next();
    let biased = matches!(first, Some(TokenTree::Ident(ident)) if ident == "biased");
    (!biased).then_some("`ctx.select2`, or begin the `select!` with `biased;`,")
}

/// The full paths that a `use` brings in.
fn imported(tree: &UseTree) -> Vec<Vec<String>> {
    match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let prefixed = |rest: Vec<String>| [vec![first.clone()], rest].concat();
            imported(&path.tree).into_iter().map(prefixed).collect()
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.ident.to_string()]],
        UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        UseTree::Group(group) => group.items.iter().flat_map(imported).collect(),
    }
}
