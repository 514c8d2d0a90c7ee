//! The macro that declares a record of settings: fields, defaults and rows in one place.

/// Declares a struct whose fields are settings.
///
/// ```text
/// settings! {
///     /// What the struct is.
///     pub struct Limits at "limits." in (run.limits) {
///         silence_ms: u64 = 300_000, "silence_seconds", Seconds(1, 7_200), GuardedAbove, "Stop a silent agent after N seconds";
///     }
/// }
/// ```
///
/// A line is: field, type, default; then the path below the section, the kind with its bounds, the class and the help.
/// `unset "…"` after the help gives the reason for no default. A field without these is no setting. The parentheses
/// hold the way from [`AllSettings`](super::AllSettings) to the struct. The order of the lines is the order on the wire.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident at $section:literal in $at:tt {
            $(
                $(#[$attribute:meta])*
                $field:ident : $type:ty = $value:expr
                $(, $key:literal, $kind:ident $(($($bound:expr),*))?, $class:ident, $help:literal $(, unset $why:literal)?)?
                ;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[doc = $help])?
                $(#[$attribute])*
                pub $field: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $value,)* }
            }
        }

        impl $name {
            /// Its settings.
            pub(crate) const ROWS: &'static [$crate::settings::SettingRow] = &[
                $($(
                    $crate::settings::SettingRow {
                        path: concat!($section, $key),
                        kind: $crate::settings::SettingKind::$kind $(($($bound),*))?,
                        class: $crate::settings::SettingClass::$class,
                        preset: $crate::settings::settings!(@preset $($why)?),
                        help: $help,
                        home: $crate::settings::settings!(@home $at),
                        read: |all, _| {
                            $crate::settings::SettingField::read(&$crate::settings::place!(all $at).$field)
                        },
                        write: |all, _, value| {
                            $crate::settings::SettingField::write(&mut $crate::settings::place!(all $at).$field, value)
                        },
                    },
                )?)*
            ];
        }
    };
    (@preset) => { $crate::settings::Preset::Field };
    (@preset $why:literal) => { $crate::settings::Preset::Unset($why) };
    (@home (run $($rest:tt)*)) => { $crate::settings::Home::Run };
    (@home (sprint $($rest:tt)*)) => { $crate::settings::Home::Sprint };
    (@home (program $($rest:tt)*)) => { $crate::settings::Home::Program };
}

/// `place!(all (run.limits))` is `all.run.limits`.
macro_rules! place {
    ($all:ident ($($way:tt)*)) => { $all.$($way)* };
}

pub(crate) use {place, settings};
