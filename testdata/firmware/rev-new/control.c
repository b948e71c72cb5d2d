/* Runs shorter than before, and asks for a boost. */
volatile int output;

int limit(int value, int low, int high);

static int heat(int error)
{
    if (error > 5)
        return 10;
    return 1;
}

static int boost(int error)
{
    if (error > 100)
        return 50;
    return 0;
}

int main(void)
{
    int total = 0;
    for (int i = 0; i < 4; i++) {
        total += boost(i);
        total += heat(i);
    }
    output = limit(total, 10, 50);
    return 0;
}
