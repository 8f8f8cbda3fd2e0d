//! [`Function`]: a free function with or without a body.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, Ident, Result, Signature, Token, Visibility,
    parse::{Parse, ParseStream},
};

/// A function as it was written. Without a body it declares a handler that runs elsewhere.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Option<Block>,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (attrs, vis) = (input.call(Attribute::parse_outer)?, input.parse()?);
        let sig = input
            .parse()
            .map_err(|error| syn::Error::new(error.span(), "this attribute belongs on an `async fn`"))?;
        let body = match input.parse::<Option<Token![;]>>()? {
            Some(_) => None,
            None => Some(input.parse()?),
        };
        Ok(Self { attrs, vis, sig, body })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, vis, sig, body } = self;
        // A function without a body exists as a declaration only.
        if let Some(body) = body {
            tokens.extend(quote!(#(#attrs)* #vis #sig #body));
        }
    }
}

/// The type of a handler. An empty enum does not use the function's name in the value namespace.
pub(crate) fn marker_type(attrs: &[Attribute], vis: &Visibility, ident: &Ident) -> TokenStream {
    let docs = attrs.iter().filter(|attr| attr.path().is_ident("doc"));
    let cfgs = cfgs(attrs);
    quote! {
        #(#cfgs)*
        #(#docs)*
        #[allow(non_camel_case_types, missing_debug_implementations, missing_docs)]
        #vis enum #ident {}
    }
}

/// The attributes that decide whether an item exists.
pub(crate) fn cfgs(attrs: &[Attribute]) -> Vec<&Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect()
}

/// The name that a handler is registered under, if none was given.
pub(crate) fn default_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}
