volatile int output;

int limit(int value, int low, int high);

static int heat(int error)
{
    if (error > 5)
        return 10;
    return 1;
}

static int cool(int error)
{
    return error - 2;
}

int main(void)
{
    int total = 0;
    for (int i = -3; i < 9; i++) {
        if (i >= 0)
            total += heat(i);
        else
            total += cool(i);
    }
    output = limit(total, 0, 50);
    return 0;
}
