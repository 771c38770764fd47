typedef long long i64;
struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
