"""One module per framework; each turns registry tools into that framework's native tools."""
