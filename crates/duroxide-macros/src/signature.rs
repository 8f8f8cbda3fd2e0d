//! [`Shape`]: the input and the result in a handler's signature.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, FnArg, Ident, Result, ReturnType, Safety, Signature, Type, spanned::Spanned};

/// Which handler a signature is of, for messages.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Activity,
    Orchestration,
}

impl Kind {
    fn an(self) -> &'static str {
        match self {
            Self::Activity => "an activity",
            Self::Orchestration => "an orchestration",
        }
    }

    /// The trait of its code, and the context that the code is given.
    fn code(self) -> (TokenStream, TokenStream) {
        match self {
            Self::Activity => (quote!(::duroxide::typed::ActivityCode), quote!(::duroxide::ActivityContext)),
            Self::Orchestration => {
                (quote!(::duroxide::typed::OrchestrationCode), quote!(::duroxide::OrchestrationContext))
            }
        }
    }

    fn context(self) -> &'static str {
        match self {
            Self::Activity => "ActivityContext",
            Self::Orchestration => "OrchestrationContext",
        }
    }
}

/// The types of a handler.
pub(crate) struct Shape {
    kind: Kind,
    context: Type,
    arguments: Vec<Type>,
    result: Type,
}

impl Shape {
    /// Reads the signature of a handler; `arguments` are its arguments without a receiver.
    pub(crate) fn of<'a>(
        kind: Kind,
        sig: &Signature,
        arguments: impl Iterator<Item = &'a FnArg>,
    ) -> Result<Self> {
        check_modifiers(kind, sig)?;
        let mut types = Vec::new();
        for argument in arguments {
            match argument {
                FnArg::Typed(typed) => types.push((*typed.ty).clone()),
                FnArg::Receiver(receiver) => {
                    return Err(Error::new(
                        receiver.span(),
                        "a free function has no `self`: put `#[duroxide::activities]` on the `impl` block",
                    ));
                }
            }
        }
        let mut types = types.into_iter();
        let context = check_context(kind, sig, types.next())?;
        let arguments: Vec<Type> = types.collect();
        arguments.iter().try_for_each(check_owned)?;
        let ReturnType::Type(_, result) = &sig.output else {
            let message = format!("{} returns `Result<Output, Error>`", kind.an());
            return Err(Error::new(sig.ident.span(), message));
        };
        Ok(Self { kind, context, arguments, result: (**result).clone() })
    }

    /// The associated types `Input`, `Output` and `Error`.
    pub(crate) fn associated_types(&self) -> TokenStream {
        let (input, result) = (self.input(), &self.result);
        // The span lets a type that cannot be recorded be pointed at in the signature.
        let at = result.span();
        let sides = quote_spanned! {at=>
            type Output = <#result as ::duroxide::typed::Outcome>::Output;
            type Error = <#result as ::duroxide::typed::Outcome>::Error;
        };
        quote!(type Input = #input; #sides)
    }

    fn input(&self) -> TokenStream {
        match self.arguments.as_slice() {
            [] => quote!(()),
            [only] => quote_spanned!(only.span()=> #only),
            several => quote!((#(#several),*)),
        }
    }

    /// The code behind a handler's name: a call of its function, if it `has_body`.
    pub(crate) fn code(&self, ident: &Ident, cfgs: &[&Attribute], has_body: bool) -> TokenStream {
        if !has_body {
            let context = self.used_context();
            return quote!(#(#cfgs)* #context);
        }
        let (pattern, arguments) = self.call_arguments();
        let (code, context) = self.kind.code();
        quote! {
            #(#cfgs)*
            impl #code for #ident {
                async fn run(
                    ctx: #context,
                    #pattern: Self::Input,
                ) -> ::core::result::Result<Self::Output, Self::Error> {
                    #ident(ctx, #(#arguments),*).await
                }
            }
        }
    }

    /// Names the types of a declaration without a body, which the compiler would otherwise report as unused imports.
    fn used_context(&self) -> TokenStream {
        let context = &self.context;
        quote!(const _: ::core::marker::PhantomData<#context> = ::core::marker::PhantomData;)
    }

    /// A pattern that takes the input apart, and the arguments of the call.
    pub(crate) fn call_arguments(&self) -> (TokenStream, Vec<Ident>) {
        let names: Vec<Ident> = (0..self.arguments.len()).map(|n| format_ident!("argument_{n}")).collect();
        let pattern = match names.as_slice() {
            [] => quote!(()),
            [only] => quote!(#only),
            several => quote!((#(#several),*)),
        };
        (pattern, names)
    }
}

fn check_modifiers(kind: Kind, sig: &Signature) -> Result<()> {
    let an = kind.an();
    let refuse = |span: Span, message: String| Err(Error::new(span, message));
    if sig.asyncness.is_none() {
        return refuse(sig.fn_token.span, format!("{an} is an `async fn`"));
    }
    if let Safety::Unsafe(token) = &sig.safety {
        return refuse(token.span, format!("{an} cannot be `unsafe`: the runtime calls it"));
    }
    if let Some(abi) = &sig.abi {
        return refuse(abi.span(), format!("{an} cannot have a foreign ABI"));
    }
    if !sig.generics.params.is_empty() {
        let message = format!("{an} cannot be generic: its name stands for one input and one output type");
        return refuse(sig.generics.span(), message);
    }
    Ok(())
}

/// The context is recognized by its name, because a macro sees no types.
fn check_context(kind: Kind, sig: &Signature, first: Option<Type>) -> Result<Type> {
    let wanted = kind.context();
    let is_context = |ty: &Type| match ungrouped(ty) {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == wanted),
        _ => false,
    };
    let message = format!("the first argument of {} is its context: `ctx: {wanted}`", kind.an());
    match first {
        Some(first) if is_context(&first) => Ok(first),
        Some(first) => Err(Error::new(first.span(), message)),
        None => Err(Error::new(sig.ident.span(), message)),
    }
}

/// Arguments are read from the record, so nothing is there to borrow from.
fn check_owned(ty: &Type) -> Result<()> {
    match ungrouped(ty) {
        Type::Reference(_) => Err(Error::new(
            ty.span(),
            "arguments are recorded, and given to the handler as owned values: use `String` instead of `&str`, `Vec<T>` \
             instead of `&[T]`",
        )),
        Type::ImplTrait(_) => Err(Error::new(ty.span(), "arguments are recorded: name the type")),
        _ => Ok(()),
    }
}

/// A type without the invisible group that a `macro_rules` variable puts around it.
fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        ty => ty,
    }
}
