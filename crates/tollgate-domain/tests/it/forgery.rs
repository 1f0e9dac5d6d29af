//! What the compiler refuses: an ALLOW that no record stands behind, and a secret that leaks.

use tollgate_domain::{Arguments, Json, Judged, Message, Pass, Recorded, Sensitive};

/// Compiles only while the type does not have the trait: with it, `check` is ambiguous.
macro_rules! never {
    ($type:ty: $trait:path) => {
        const _: fn() = || {
            struct HasIt;
            trait Ambiguous<Which> {
                fn check() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<HasIt> for T {}
            <$type as Ambiguous<_>>::check();
        };
    };
}

never!(Pass: Clone);
never!(Pass: Default);
never!(Pass: serde::de::DeserializeOwned);
never!(Recorded: Clone);
never!(Recorded: serde::de::DeserializeOwned);
never!(Judged: Clone);
never!(Sensitive<String>: serde::Serialize);
never!(Sensitive<String>: std::fmt::Display);
never!(Sensitive<String>: std::ops::Deref);
never!(Sensitive<String>: PartialEq);
never!(Message: serde::Serialize);
never!(Message: std::fmt::Display);
never!(Arguments: serde::Serialize);
never!(Arguments: std::fmt::Display);
never!(Json: serde::Serialize);
never!(Json: std::fmt::Display);

#[test]
fn p05_nothing_but_the_record_makes_a_pass() {
    trybuild::TestCases::new().compile_fail("tests/forgery/*.rs");
}
