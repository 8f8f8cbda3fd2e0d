//! `#[activities]`: the methods of an `impl` block as activities that share state.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Error, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, Receiver, ReceiverKind, Result, Type,
    spanned::Spanned, visit_mut::VisitMut,
};

use crate::{
    args::Args,
    function::{cfgs, default_name, marker_type},
    signature::{Kind, Shape},
};

const RECEIVER: &str = "an activity of a service takes `self: Arc<Self>`, because several may run at once";

pub(crate) fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut block = match syn::parse2::<ItemImpl>(item) {
        Ok(block) => block,
        Err(error) => {
            let message = "this attribute belongs on an `impl` block";
            return Error::new(error.span(), message).to_compile_error();
        }
    };
    let declared = if args.is_empty() {
        declare(&mut block)
    } else {
        Err(Error::new(
            args.span(),
            "`activities` takes no arguments: name an activity with `#[activity(name = \"...\")]` on its method",
        ))
    };
    let declared = declared.unwrap_or_else(|error| error.to_compile_error());
    quote!(#block #declared)
}

fn declare(block: &mut ItemImpl) -> Result<TokenStream> {
    if let Some((path, _)) = &block.trait_ {
        return Err(Error::new(path.span(), "activities are inherent methods, not those of a trait"));
    }
    let service = (*block.self_ty).clone();
    let mut declared = TokenStream::new();
    let mut registered = TokenStream::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let args = take_args(&mut method.attrs)?;
        if args.is_none() && !is_activity(method)? {
            continue;
        }
        let activity = Activity { service: &service, generics: &block.generics, method };
        declared.extend(activity.declare(args.unwrap_or_default())?);
        registered.extend(register(method));
    }
    if registered.is_empty() {
        let message = "no activity here: `async fn charge(self: Arc<Self>, ctx: ActivityContext, ...)`";
        return Err(Error::new(block.self_ty.span(), message));
    }
    let (generics, _, bounds) = block.generics.split_for_impl();
    Ok(quote! {
        #declared
        impl #generics ::duroxide::typed::ActivityService for #service #bounds {
            fn register(
                self: ::std::sync::Arc<Self>,
                builder: ::duroxide::typed::ActivityRegistryBuilder,
            ) -> ::duroxide::typed::ActivityRegistryBuilder {
                #registered
                builder
            }
        }
    })
}

/// The arguments of `#[activity]` on a method, which is removed.
fn take_args(attrs: &mut Vec<Attribute>) -> Result<Option<Args>> {
    let Some(position) = attrs
        .iter()
        .position(|attr| attr.path().segments.last().is_some_and(|segment| segment.ident == "activity"))
    else {
        return Ok(None);
    };
    let attr = attrs.remove(position);
    let mut args = Args::default();
    if !matches!(attr.meta, syn::Meta::Path(_)) {
        attr.parse_nested_meta(|meta| args.parse_activity(&meta))?;
    }
    Ok(Some(args))
}

/// Whether a method is an activity. A method that resembles one is refused: it would silently not be registered.
fn is_activity(method: &ImplItemFn) -> Result<bool> {
    let mut inputs = method.sig.inputs.iter();
    let Some(FnArg::Receiver(receiver)) = inputs.next() else { return Ok(false) };
    if is_shared(receiver) {
        return Ok(method.sig.asyncness.is_some());
    }
    match inputs.next() {
        Some(FnArg::Typed(typed)) if names(&typed.ty, "ActivityContext") => {
            Err(Error::new(receiver.span(), RECEIVER))
        }
        _ => Ok(false),
    }
}

fn is_shared(receiver: &Receiver) -> bool {
    matches!(&receiver.kind, ReceiverKind::Typed(_, ty) if names(ty, "Arc"))
}

/// Whether a type is a path that ends with this name.
fn names(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == name)
}

/// A method that is an activity.
struct Activity<'a> {
    service: &'a Type,
    generics: &'a syn::Generics,
    method: &'a ImplItemFn,
}

impl Activity<'_> {
    fn declare(&self, args: Args) -> Result<TokenStream> {
        let ImplItemFn { attrs, vis, sig, .. } = self.method;
        match sig.inputs.first() {
            Some(FnArg::Receiver(receiver)) if is_shared(receiver) => {}
            Some(other) => return Err(Error::new(other.span(), RECEIVER)),
            None => return Err(Error::new(sig.ident.span(), RECEIVER)),
        }
        self.check_self_types()?;
        let shape = Shape::of(Kind::Activity, sig, sig.inputs.iter().skip(1))?;
        let (ident, service) = (&sig.ident, self.service);
        let name = args.name.map_or_else(|| default_name(ident), |name| name.value());
        let (cfgs, marker) = (cfgs(attrs), marker_type(attrs, vis, ident));
        let types = shape.associated_types();
        let (pattern, arguments) = shape.call_arguments();
        let (generics, _, bounds) = self.generics.split_for_impl();
        Ok(quote! {
            #marker
            #(#cfgs)*
            impl ::duroxide::typed::Activity for #ident {
                const NAME: &'static str = #name;
                #types
            }
            #(#cfgs)*
            impl #generics ::duroxide::typed::ServiceActivity<#service> for #ident #bounds {
                async fn run(
                    service: ::std::sync::Arc<#service>,
                    ctx: ::duroxide::ActivityContext,
                    #pattern: Self::Input,
                ) -> ::core::result::Result<Self::Output, Self::Error> {
                    <#service>::#ident(service, ctx, #(#arguments),*).await
                }
            }
        })
    }

    /// In the generated code `Self` is the activity's own type.
    fn check_self_types(&self) -> Result<()> {
        let mut found = SelfType(None);
        for input in self.method.sig.inputs.iter().skip(1) {
            found.visit_fn_arg_mut(&mut input.clone());
        }
        found.visit_return_type_mut(&mut self.method.sig.output.clone());
        let message = "name the type: `Self` is not known where the activity is declared";
        found.0.map_or(Ok(()), |ident| Err(Error::new(ident.span(), message)))
    }
}

struct SelfType(Option<Ident>);

impl VisitMut for SelfType {
    fn visit_ident_mut(&mut self, ident: &mut Ident) {
        if ident == "Self" {
            self.0.get_or_insert_with(|| ident.clone());
        }
    }
}

/// Registers one activity, if it exists in this configuration.
fn register(method: &ImplItemFn) -> TokenStream {
    let (cfgs, ident) = (cfgs(&method.attrs), &method.sig.ident);
    quote! {
        #(#cfgs)*
        let builder = builder.service_activity::<Self, #ident>(::std::sync::Arc::clone(&self));
    }
}
