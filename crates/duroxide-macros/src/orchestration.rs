//! `#[orchestration]`: a free function as an orchestration.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Result;

use crate::{
    args::Args,
    function::{Function, cfgs, default_name, marker_type},
    guard,
    signature::{Kind, Shape},
};

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut function = match syn::parse2::<Function>(item) {
        Ok(function) => function,
        Err(error) => return error.to_compile_error(),
    };
    let refused = match &mut function.body {
        Some(body) => guard::check(&function.sig, body),
        None => Vec::new(),
    };
    let refused = refused.iter().map(syn::Error::to_compile_error);
    let declared = declare(args, &function).unwrap_or_else(|error| error.to_compile_error());
    quote!(#function #declared #(#refused)*)
}

fn declare(args: TokenStream, function: &Function) -> Result<TokenStream> {
    let Function { attrs, vis, sig, body } = function;
    let shape = Shape::of(Kind::Orchestration, sig, sig.inputs.iter())?;
    let ident = &sig.ident;
    let args = Args::of_orchestration(args)?;
    let name = args.name.map_or_else(|| default_name(ident), |name| name.value());
    let version = args.version.map(|version| {
        quote!(const VERSION: ::core::option::Option<&'static str> = ::core::option::Option::Some(#version);)
    });
    let (cfgs, marker) = (cfgs(attrs), marker_type(attrs, vis, ident));
    let types = shape.associated_types();
    let code = shape.code(ident, &cfgs, body.is_some());
    Ok(quote! {
        #marker
        #(#cfgs)*
        impl ::duroxide::typed::Orchestration for #ident {
            const NAME: &'static str = #name;
            #version
            #types
        }
        #code
    })
}
