/* The Non-secure half contains the work a second time, under other names. */
#define next_random nonsecure_next_random
#define crc32 nonsecure_crc32
#define ascending nonsecure_ascending
#define by_magnitude nonsecure_by_magnitude
#define quicksort nonsecure_quicksort
#define fibonacci nonsecure_fibonacci
#define clamp nonsecure_clamp
#define gcd nonsecure_gcd
#define interpret nonsecure_interpret
#define count_words nonsecure_count_words
