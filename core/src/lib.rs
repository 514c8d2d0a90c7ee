pub mod words;
pub mod event;
pub mod run;
pub mod decide;
pub mod rules;
