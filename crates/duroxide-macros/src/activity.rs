//! `#[activity]`: a free function as an activity.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Result;

use crate::{
    args::Args,
    function::{Function, cfgs, default_name, marker_type},
    signature::{Kind, Shape},
};

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse2::<Function>(item) {
        Ok(function) => match declare(args, &function) {
            Ok(declared) => quote!(#function #declared),
            // The function stays, so that its callers do not fail as well.
            Err(error) => {
                let error = error.to_compile_error();
                quote!(#function #error)
            }
        },
        Err(error) => error.to_compile_error(),
    }
}

fn declare(args: TokenStream, function: &Function) -> Result<TokenStream> {
    let Function { attrs, vis, sig, body } = function;
    let shape = Shape::of(Kind::Activity, sig, sig.inputs.iter())?;
    let ident = &sig.ident;
    let name = Args::of_activity(args)?.name.map_or_else(|| default_name(ident), |name| name.value());
    let (cfgs, marker) = (cfgs(attrs), marker_type(attrs, vis, ident));
    let types = shape.associated_types();
    let code = shape.code(ident, &cfgs, body.is_some());
    Ok(quote! {
        #marker
        #(#cfgs)*
        impl ::duroxide::typed::Activity for #ident {
            const NAME: &'static str = #name;
            #types
        }
        #code
    })
}
