pub mod children;
