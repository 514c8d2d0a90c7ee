//! The macro behind the list of shadows.

/// `mod <file> is <Type>;` declares a shadow. Its file has the constant `ABOUT`, the thresholds `<Type>` and the function
/// `check`. The order is the order on the wire.
///
/// The macro declares the modules itself, so that one line is enough. `cargo fmt` does not see through it; the step `fmt` of
/// `cargo xtask test` formats these files by name.
macro_rules! shadows {
    ($(mod $module:ident is $type:ident;)*) => {
        $(mod $module;)*
        $(pub use $module::$type;)*

        /// The shadow of an archetype (AF-001).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Shadow {
            $($type,)*
        }

        impl Shadow {
            pub const ALL: &'static [Shadow] = &[$(Shadow::$type,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Shadow::$type => stringify!($module),)*
                }
            }

            pub fn about(self) -> About {
                match self {
                    $(Shadow::$type => $module::ABOUT,)*
                }
            }

            fn triggers(self, facts: &Facts<'_>, policy: &Shadows) -> Vec<Sighting> {
                match self {
                    $(Shadow::$type => $module::check(facts, &policy.$module),)*
                }
            }
        }

        $crate::settings::settings! {
            /// Thresholds of the archetype shadows (AF-130..AF-138).
            pub struct Shadows at "shadows." in (run.shadows) {
                enabled: bool = true, "enabled", Switch, Guarded,
                    "Detect shadows in answers. `ARCHEFLOW_SHADOWS=off` in the environment is the same as `false`.";
                /// CL-03.
                strikes_in_cycle: u32 = 3, "strikes_in_cycle", Whole(1, 100), GuardedAbove,
                    "Stop the run when one shadow is detected N times in one cycle.";
                distinct_in_cycle: u32 = 3, "distinct_in_cycle", Whole(1, 100), GuardedAbove,
                    "Report to the user when N different shadows are detected in one cycle.";
                distinct_breaks: bool = false, "distinct_breaks", Switch, Inert, "And stop the run.";
                consecutive_break: bool = true, "consecutive_break", Switch, Guarded,
                    "Stop the run after three detections of one shadow without a clean check in between.";
                /// A run that a shadow ends names the cause that weighs more, where there is one. Not so in journals from
                /// before it did.
                #[serde(default, skip_serializing_if = "std::ops::Not::not")]
                weightier_cause: bool = true;
                $($module: $type = $type::default();)*
            }
        }

        /// The settings of all shadows.
        pub(crate) static ROWS: &[&[$crate::settings::SettingRow]] = &[Shadows::ROWS, $($type::ROWS,)*];
    };
}
