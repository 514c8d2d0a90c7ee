//! One cycle in line (AF-190, AF-191): one reviewer after the other, and one targeted fix instead of another cycle.

mod decide;
mod view;

pub(crate) struct Pipeline;
