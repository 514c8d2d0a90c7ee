//! Enums whose variants have names in logs, files and tables.

/// Declares an enum with a name for each variant: `ALL` lists the variants in their order, `name` returns the name.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$about:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$about])* $variant,)+
        }

        impl $type {
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }
    };
}

pub(crate) use named;
