//! The arguments of the attributes: `name = "..."` and `version = "..."`.

use proc_macro2::TokenStream;
use syn::{LitStr, Result, meta::ParseNestedMeta, parse::Parser};

/// The arguments of an attribute.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) name: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
}

impl Args {
    /// The arguments of `#[orchestration(...)]`.
    pub(crate) fn of_orchestration(tokens: TokenStream) -> Result<Self> {
        let mut args = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("version") {
                set(&mut args.version, &meta)?;
                return args.version.as_ref().map_or(Ok(()), check_version);
            }
            args.parse_name(&meta, "expected `name = \"...\"` or `version = \"...\"`")
        });
        parser.parse2(tokens)?;
        Ok(args)
    }

    /// The arguments of `#[activity(...)]`.
    pub(crate) fn of_activity(tokens: TokenStream) -> Result<Self> {
        let mut args = Self::default();
        let parser = syn::meta::parser(|meta| args.parse_activity(&meta));
        parser.parse2(tokens)?;
        Ok(args)
    }

    pub(crate) fn parse_activity(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("version") {
            return Err(meta.error(
                "activities have no versions: a changed activity gets another name, so that calls that are recorded find \
                 the old one",
            ));
        }
        self.parse_name(meta, "expected `name = \"...\"`")
    }

    fn parse_name(&mut self, meta: &ParseNestedMeta<'_>, expected: &str) -> Result<()> {
        if !meta.path.is_ident("name") {
            return Err(meta.error(expected));
        }
        set(&mut self.name, meta)?;
        match &self.name {
            Some(name) if name.value().is_empty() => Err(syn::Error::new(name.span(), "the name is empty")),
            _ => Ok(()),
        }
    }
}

fn set(slot: &mut Option<LitStr>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    let value = meta.value()?.parse()?;
    if slot.replace(value).is_some() {
        return Err(meta.error("given twice"));
    }
    Ok(())
}

/// Refuses common mistakes at compile time. The registry checks the rest when the handler is registered.
fn check_version(version: &LitStr) -> Result<()> {
    let text = version.value();
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if core.split('.').count() == 3 && core.split('.').all(is_number) {
        return Ok(());
    }
    Err(syn::Error::new(version.span(), "expected a semantic version of three numbers, such as \"2.0.0\""))
}
